package backend

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"

	"github.com/pgebb/pgebb/config"
	"github.com/pgebb/pgebb/internal/loop"
	"github.com/pgebb/pgebb/internal/scram"
	"github.com/pgebb/pgebb/internal/wire"
)

// TLS is how connections to servers are encrypted. It is immutable, and nil stands for
// not at all.
type TLS struct {
	verify      config.TLSVerify
	required    bool // a server without TLS is none
	authorities *x509.CertPool
	own         []tls.Certificate
}

// NewTLS makes it of the configuration.
func NewTLS(c config.ServerTLS) *TLS {
	if c.Verify == config.VerifyDisabled {
		return nil
	}
	t := &TLS{verify: c.Verify, required: c.Verify >= config.VerifyCA, authorities: c.Authorities}
	if c.Certificate != nil {
		t.own = []tls.Certificate{*c.Certificate}
	}
	return t
}

// Insisting is TLS for connections that must be encrypted, because another one is or for
// what is sent.
func (t *TLS) Insisting() *TLS {
	if t == nil {
		return nil
	}
	strict := *t
	strict.required = true
	return &strict
}

// errHandshake is wrapped when a server has agreed to encryption that then fails.
var errHandshake = errors.New("encrypting the connection")

// encrypt asks the server for encryption. What it returns is the connection to go on
// with, which is the one given if the server has no TLS and that will do.
func (t *TLS) encrypt(ctx context.Context, conn net.Conn, host string) (net.Conn, error) {
	request := binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(nil, 8), wire.SSLRequestCode)
	if _, err := conn.Write(request); err != nil {
		return nil, fmt.Errorf("asking for TLS: %w", err)
	}
	var answer [1]byte
	if _, err := io.ReadFull(conn, answer[:]); err != nil {
		return nil, fmt.Errorf("asking for TLS: %w", readError(err))
	}
	switch answer[0] {
	case 'S':
	case 'N':
		if t.required {
			return nil, fmt.Errorf("the server has no TLS, which tls_verify = %q demands", t.verify)
		}
		return conn, nil
	case wire.ErrorResponse:
		return nil, readErrorAnswer(conn)
	default:
		return nil, fmt.Errorf("the server answers %q to a request for TLS", answer[0])
	}
	encrypted, err := loop.Client(ctx, conn, t.config(host))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errHandshake, err)
	}
	return encrypted, nil
}

// readErrorAnswer reads what follows the type of an ErrorResponse: a server that has no
// process for us says so at once.
func readErrorAnswer(conn net.Conn) error {
	var length [4]byte
	if _, err := io.ReadFull(conn, length[:]); err != nil {
		return readError(err)
	}
	size := binary.BigEndian.Uint32(length[:])
	if size < 4 || size > maxLoginMessage {
		return readOldError(conn, length[:])
	}
	body := make([]byte, size-4)
	if _, err := io.ReadFull(conn, body); err != nil {
		return readError(err)
	}
	return &ServerError{body}
}

// config is for one server. It is verified here and not by crypto/tls, which would always
// compare the host, and never with a CN.
func (t *TLS) config(host string) *tls.Config {
	cfg := &tls.Config{
		MinVersion: tls.VersionTLS12, InsecureSkipVerify: true, Certificates: t.own,
		NextProtos: []string{"postgresql"}, DynamicRecordSizingDisabled: true,
	}
	if net.ParseIP(host) == nil {
		cfg.ServerName = host
	}
	if t.verify >= config.VerifyCA {
		cfg.VerifyConnection = func(state tls.ConnectionState) error {
			if err := t.verifyServer(state.PeerCertificates, host); err != nil {
				return fmt.Errorf("the server's certificate is not accepted (tls_verify = %q): %w", t.verify, err)
			}
			return nil
		}
	}
	return cfg
}

func (t *TLS) verifyServer(certificates []*x509.Certificate, host string) error {
	intermediates := x509.NewCertPool()
	for _, c := range certificates[1:] {
		intermediates.AddCert(c)
	}
	leaf := certificates[0]
	options := x509.VerifyOptions{Roots: t.authorities, Intermediates: intermediates, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}}
	if _, err := leaf.Verify(options); err != nil {
		return err
	}
	if t.verify < config.VerifyFull {
		return nil
	}
	return verifyHost(leaf, host)
}

// endPoint is the channel binding data of a connection. ok is false if there can be no
// channel binding.
func endPoint(conn net.Conn) (data []byte, ok bool) {
	t, ok := conn.(*loop.TLS)
	if !ok {
		return nil, false
	}
	data = scram.EndPoint(t.ConnectionState().PeerCertificates[0])
	return data, data != nil
}
