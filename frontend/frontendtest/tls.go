package frontendtest

import (
	"bytes"
	"crypto/tls"
	"encoding/binary"
	"fmt"
	"io"
	"time"

	"github.com/pgebb/pgebb/internal/scram"
	"github.com/pgebb/pgebb/internal/wire"
)

// SSLRequest asks for encryption.
var SSLRequest = binary.BigEndian.AppendUint32([]byte{0, 0, 0, 8}, wire.SSLRequestCode)

// Encrypt starts TLS, and asks for it before unless it is direct.
func (c *Client) Encrypt(cfg *tls.Config, direct bool) error {
	if !direct {
		if err := c.Send(SSLRequest); err != nil {
			return err
		}
		_ = c.SetReadDeadline(time.Now().Add(patience))
		var answer [1]byte
		if _, err := io.ReadFull(c, answer[:]); err != nil {
			return fmt.Errorf("asking for TLS: %w", err)
		}
		if answer[0] != 'S' {
			return fmt.Errorf("asking for TLS: the answer is %q", answer[0])
		}
	}
	conn := tls.Client(c.Conn, cfg)
	_ = conn.SetDeadline(time.Now().Add(patience))
	if err := conn.Handshake(); err != nil {
		return err
	}
	c.Conn = conn
	return nil
}

// bind binds a SCRAM login to the certificate of the connection as libpq does, and returns
// the mechanism to choose of those that are offered.
func (c *Client) bind(client *scram.Client, offer []byte) (mechanism string) {
	conn, ok := c.Conn.(*tls.Conn)
	if !ok {
		return scram.Mechanism
	}
	data := scram.EndPoint(conn.ConnectionState().PeerCertificates[0])
	if data == nil {
		return scram.Mechanism
	}
	plus := bytes.Contains(offer, []byte(scram.MechanismPlus+"\x00"))
	client.Bind(data, plus)
	if plus {
		return scram.MechanismPlus
	}
	return scram.Mechanism
}
