package frontend

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/binary"
	"fmt"
	"net"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/pgebb/pgebb/config"
	"github.com/pgebb/pgebb/internal/loop"
	"github.com/pgebb/pgebb/internal/scram"
	"github.com/pgebb/pgebb/internal/wire"
)

// protocolALPN is what a client that starts with TLS at once says it is going to speak
// (PG_ALPN_PROTOCOL in PostgreSQL).
const protocolALPN = "postgresql"

// tlsHandshake is the first byte of a TLS connection: the type of its first record. As
// that of the length of a StartupMessage it would be far too long.
const tlsHandshake = 0x16

// sslRequest is what a client says that wants to be encrypted.
var sslRequest = binary.BigEndian.AppendUint32([]byte{0, 0, 0, 8}, wire.SSLRequestCode)

// encryption is what the connections of clients are encrypted with. It is immutable: a
// reload makes another, for connections to come.
type encryption struct {
	cfg      *tls.Config
	endPoint []byte // channel binding data of the certificate, nil if it has none
}

// newEncryption makes it of the configuration; nil if that has no certificate.
func newEncryption(c config.ClientTLS) *encryption {
	if c.Certificate == nil {
		return nil
	}
	cfg := &tls.Config{
		Certificates: []tls.Certificate{*c.Certificate},
		MinVersion:   tls.VersionTLS12,
		NextProtos:   []string{protocolALPN},
		// Clients of Postgres do not resume sessions, and Postgres has no tickets either.
		SessionTicketsDisabled: true,
		// Small records at first are for browsers.
		DynamicRecordSizingDisabled: true,
	}
	if c.Authorities != nil {
		// Who must show a certificate depends on the user, who is not known yet.
		cfg.ClientAuth, cfg.ClientCAs = tls.VerifyClientCertIfGiven, c.Authorities
	}
	return &encryption{cfg, scram.EndPoint(c.Certificate.Leaf)}
}

// shield is what TLS says of a client.
type shield struct {
	endPoint    []byte            // channel binding data of the certificate it was shown, nil if that has none
	certificate *x509.Certificate // that it has shown and that is good, nil if none
}

// encrypt shakes hands with a client, of whom head has been read. The connection is
// encrypted from then on.
func (r *reception) encrypt(head []byte) (*tls.ConnectionState, error) {
	conn, err := loop.Server(r.conn, head, r.encryption.cfg)
	if err != nil {
		return nil, err
	}
	r.conn = conn
	state := conn.ConnectionState()
	r.shield = &shield{endPoint: r.encryption.endPoint}
	if len(state.VerifiedChains) > 0 {
		r.shield.certificate = state.PeerCertificates[0]
	}
	return &state, nil
}

// answerSSLRequest encrypts the connection if that can be done.
func (r *reception) answerSSLRequest() error {
	if r.encryption == nil || r.isUnix() {
		return r.say('N')
	}
	if a, ok := r.conn.(*arrival); ok {
		return a.elsewhere(sslRequest)
	}
	// What is there already cannot be an answer to ours. Whoever put it there may want it
	// to be taken for a part of what is encrypted.
	if waits, err := inputWaits(r.conn); err != nil {
		return err
	} else if waits {
		return errUnencryptedData()
	}
	if err := r.say('S'); err != nil {
		return err
	}
	_, err := r.encrypt(nil)
	return err
}

// direct encrypts the connection of a client that does not ask first.
func (r *reception) direct(head []byte) error {
	if r.encryption == nil || r.isUnix() {
		return fmt.Errorf("%w: it starts with TLS, which is not configured (tls_certificate)", errNoStartup)
	}
	if a, ok := r.conn.(*arrival); ok {
		return a.elsewhere(head)
	}
	state, err := r.encrypt(head)
	if err != nil {
		return err
	}
	if state.NegotiatedProtocol != protocolALPN {
		return errNoALPN()
	}
	return nil
}

func (r *reception) say(answer byte) error {
	if _, err := r.conn.Write([]byte{answer}); err != nil {
		return fmt.Errorf("answering a request for encryption: %w", err)
	}
	return nil
}

func (r *reception) isUnix() bool { return isUnix(r.conn) }

func isUnix(conn net.Conn) bool {
	a := conn.RemoteAddr()
	return a != nil && a.Network() == "unix"
}

// startsWithTLS reports whether what was taken for a length is the start of a TLS record.
func startsWithTLS(head []byte) bool {
	const major = 3 // of the version of every record
	return head[0] == tlsHandshake && head[1] == major
}

// inputWaits reports whether something can be read of a connection.
func inputWaits(conn net.Conn) (waits bool, err error) {
	if p, ok := conn.(*prefixed); ok && len(p.rest) > 0 {
		return true, nil
	}
	sc, ok := conn.(syscall.Conn)
	if !ok {
		return false, nil
	}
	raw, err := sc.SyscallConn()
	if err != nil {
		return false, fmt.Errorf("looking at a client's input: %w", err)
	}
	err = raw.Control(func(fd uintptr) {
		n, _, rerr := unix.Recvfrom(int(fd), make([]byte, 1), unix.MSG_PEEK|unix.MSG_DONTWAIT)
		waits = rerr == nil && n > 0
	})
	if err != nil {
		return false, fmt.Errorf("looking at a client's input: %w", err)
	}
	return waits, nil
}
