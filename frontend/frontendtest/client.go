// Package frontendtest is a client for tests: one that says exactly what a test wants,
// in the pieces that it wants, and shows what comes back as text.
//
// [Client] is a connection, [Script] a wire transcript: a text file with what clients
// say and what they are told.
//
// The caveat that bites: nothing is checked. A test that sends nonsense sends nonsense.
package frontendtest

import (
	"crypto/tls"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/pgebb/pgebb/backend"
	"github.com/pgebb/pgebb/internal/scram"
	"github.com/pgebb/pgebb/internal/wire"
)

// patience is how long a client waits for an answer that is not told otherwise.
const patience = 20 * time.Second

// Login is how a client logs in.
type Login struct {
	Network, Address         string
	User, Password, Database string
	Version                  uint32   // of the protocol; 0 is 3.0
	Params                   []string // names and values of the StartupMessage

	TLS    *tls.Config // nil for none
	Direct bool        // TLS without asking first
}

// Message is a message as it came.
type Message struct {
	Type byte
	Body []byte
}

// Client is a connection. It is for one goroutine.
type Client struct {
	net.Conn
	Greeting []Message // what came between authentication and the first ReadyForQuery
	PID      uint32
	Secret   []byte

	// Patience is how long an answer is waited for; 0 for 20 s.
	Patience time.Duration

	// Chunk is the most bytes that are written at once; 0 for no limit.
	Chunk int

	cut      int // bytes up to where a write is split; 0 for not
	cutLater int // the same, from the end of the login on
}

// Connect dials and logs in.
func Connect(l Login) (*Client, error) {
	c, err := Dial(l.Network, l.Address)
	if err != nil {
		return nil, err
	}
	if err := c.Login(l); err != nil {
		c.Close()
		return nil, err
	}
	return c, nil
}

// Dial connects without saying anything.
func Dial(network, address string) (*Client, error) {
	conn, err := net.DialTimeout(network, address, patience)
	if err != nil {
		return nil, fmt.Errorf("connecting a test client: %w", err)
	}
	return &Client{Conn: conn}, nil
}

// Refused is an ErrorResponse during the login.
type Refused struct{ Message }

func (r *Refused) Error() string {
	return fmt.Sprintf("%s: %s", wire.ErrorField(r.Body, 'C'), wire.ErrorField(r.Body, 'M'))
}

// Code is the SQLSTATE.
func (r *Refused) Code() string { return string(wire.ErrorField(r.Body, 'C')) }

// Login encrypts the connection if that is asked for, sends the StartupMessage and answers
// up to the first ReadyForQuery.
func (c *Client) Login(l Login) error {
	if l.TLS != nil {
		if err := c.Encrypt(l.TLS, l.Direct); err != nil {
			return err
		}
	}
	version := l.Version
	if version == 0 {
		version = wire.Version30
	}
	pairs := append([]string{"user", l.User, "database", l.Database}, l.Params...)
	if err := c.Send(wire.AppendStartup(nil, version, pairs...)); err != nil {
		return err
	}
	client := scram.NewClient(l.Password)
	for {
		m, err := c.Receive()
		if err != nil {
			return err
		}
		switch m.Type {
		case wire.ErrorResponse:
			return &Refused{m}
		case wire.Authentication:
			if err := c.authenticate(client, l, m.Body); err != nil {
				return err
			}
			continue
		case wire.BackendKeyData:
			c.PID, c.Secret = binary.BigEndian.Uint32(m.Body), m.Body[4:]
		}
		c.Greeting = append(c.Greeting, m)
		if m.Type == wire.ReadyForQuery {
			c.cut, c.cutLater = c.cutLater, 0
			return nil
		}
	}
}

func (c *Client) authenticate(client *scram.Client, l Login, body []byte) error {
	data := body[4:]
	switch request := binary.BigEndian.Uint32(body); request {
	case 0:
		return nil
	case 3:
		return c.Send(wire.AppendRaw(nil, wire.Password, append([]byte(l.Password), 0)))
	case 5:
		return c.Send(wire.AppendRaw(nil, wire.Password, append([]byte(backend.MD5Response(l.User, l.Password, [4]byte(data))), 0)))
	case 10:
		mechanism := c.bind(client, data)
		first := client.First()
		answer := binary.BigEndian.AppendUint32([]byte(mechanism+"\x00"), uint32(len(first)))
		return c.Send(wire.AppendRaw(nil, wire.Password, append(answer, first...)))
	case 11:
		final, err := client.Final(data)
		if err != nil {
			return err
		}
		return c.Send(wire.AppendRaw(nil, wire.Password, final))
	case 12:
		return client.Verify(data)
	default:
		return fmt.Errorf("authentication request %d", request)
	}
}

// Send writes bytes, in the pieces that are asked for.
func (c *Client) Send(p []byte) error {
	_ = c.SetWriteDeadline(time.Now().Add(patience))
	if c.cut > 0 && c.cut < len(p) {
		if err := c.write(p[:c.cut]); err != nil {
			return err
		}
		p = p[c.cut:]
	}
	c.cut -= min(len(p), c.cut)
	for c.Chunk > 0 && len(p) > c.Chunk {
		if err := c.write(p[:c.Chunk]); err != nil {
			return err
		}
		p = p[c.Chunk:]
	}
	return c.write(p)
}

func (c *Client) write(p []byte) error {
	if _, err := c.Write(p); err != nil {
		return fmt.Errorf("test client: %w", err)
	}
	return nil
}

// Say sends messages in one piece.
func (c *Client) Say(messages ...pgproto3.FrontendMessage) error {
	var b []byte
	for _, m := range messages {
		var err error
		if b, err = m.Encode(b); err != nil {
			return fmt.Errorf("test client: %w", err)
		}
	}
	return c.Send(b)
}

// Receive reads one message.
func (c *Client) Receive() (Message, error) {
	wait := c.Patience
	if wait == 0 {
		wait = patience
	}
	_ = c.SetReadDeadline(time.Now().Add(wait))
	var header [wire.HeaderSize]byte
	if _, err := io.ReadFull(c, header[:]); err != nil {
		return Message{}, err
	}
	typ, size := wire.Header(header[:])
	if !wire.Legal(size) {
		return Message{}, fmt.Errorf("a message %q of %d bytes", typ, size)
	}
	body := make([]byte, size-wire.HeaderSize)
	if _, err := io.ReadFull(c, body); err != nil {
		return Message{}, err
	}
	return Message{typ, body}, nil
}

// Until reads messages up to and including one of the type.
func (c *Client) Until(typ byte) ([]Message, error) {
	var got []Message
	for {
		m, err := c.Receive()
		if err != nil {
			return got, fmt.Errorf("waiting for a message %q after %v: %w", typ, Types(got), err)
		}
		got = append(got, m)
		if m.Type == typ {
			return got, nil
		}
	}
}

// Types are the types of messages, as one string.
func Types(messages []Message) string {
	var b []byte
	for _, m := range messages {
		b = append(b, m.Type)
	}
	return string(b)
}

// Query runs a Query and returns the first column of its rows. An ErrorResponse is
// returned as [Refused].
func (c *Client) Query(sql string) (rows []string, err error) {
	if err := c.Say(&pgproto3.Query{String: sql}); err != nil {
		return nil, err
	}
	got, end := c.Until(wire.ReadyForQuery)
	for _, m := range got {
		switch m.Type {
		case wire.ErrorResponse:
			return rows, &Refused{m}
		case wire.DataRow:
			var d pgproto3.DataRow
			if err := d.Decode(m.Body); err != nil {
				return nil, err
			}
			if len(d.Values) > 0 {
				rows = append(rows, string(d.Values[0]))
			}
		}
	}
	return rows, end
}

// Reset closes the connection with a reset.
func (c *Client) Reset() {
	if tcp, ok := c.Conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	c.Close()
}

// HalfClose ends the client's side of the stream.
func (c *Client) HalfClose() error {
	type closer interface{ CloseWrite() error }
	if w, ok := c.Conn.(closer); ok {
		return w.CloseWrite()
	}
	return errors.New("the connection has no halves")
}

// Cancel sends a cancel request for a key and returns what is written on its
// connection until that is closed, which must be nothing.
func Cancel(network, address string, pid uint32, secret []byte) ([]byte, error) {
	c, err := Dial(network, address)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	if err := c.Send(wire.AppendCancelRequest(nil, pid, secret)); err != nil {
		return nil, err
	}
	_ = c.SetReadDeadline(time.Now().Add(patience))
	return io.ReadAll(c)
}

// Table runs a Query and returns its rows by column name, NULL as the empty string.
func (c *Client) Table(sql string) ([]map[string]string, error) {
	if err := c.Say(&pgproto3.Query{String: sql}); err != nil {
		return nil, err
	}
	got, err := c.Until(wire.ReadyForQuery)
	if err != nil {
		return nil, err
	}
	var columns []string
	var rows []map[string]string
	for _, m := range got {
		switch m.Type {
		case wire.ErrorResponse:
			return nil, &Refused{m}
		case wire.RowDescription:
			var d pgproto3.RowDescription
			if err := d.Decode(m.Body); err != nil {
				return nil, err
			}
			for _, f := range d.Fields {
				columns = append(columns, string(f.Name))
			}
		case wire.DataRow:
			var d pgproto3.DataRow
			if err := d.Decode(m.Body); err != nil {
				return nil, err
			}
			row := map[string]string{}
			for i, v := range d.Values {
				row[columns[i]] = string(v)
			}
			rows = append(rows, row)
		}
	}
	return rows, nil
}

// CutAfterLogin makes the client split what it says after its login at a byte.
func (c *Client) CutAfterLogin(at int) { c.cutLater = at }
