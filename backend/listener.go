package backend

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"github.com/pgebb/pgebb/internal/wire"
)

// maxHeard is the longest message in bytes that is taken in where notifications are listened
// to: Postgres's own are up to 8 KB.
const maxHeard = 64 << 10

// ListenerBuffer is the size in bytes of a Listener's read buffer.
const ListenerBuffer = 4 << 10

// Notification is what a NotificationResponse says.
type Notification = wire.Notification

// Listener is a connection to Postgres that does nothing but to listen, with plain blocking
// calls. One goroutine may call Read while another sends.
type Listener struct {
	PID      uint32
	Encoding string // the client_encoding that notifications have
	conn     net.Conn
}

// NewListener takes over the connection of a login.
func NewListener(s *Session) *Listener {
	l := &Listener{PID: s.PID, conn: s.Conn}
	for _, p := range s.Params {
		if p.Name == encodingParameter {
			l.Encoding = p.Value
		}
	}
	return l
}

// Send sends a Query, which may take as long as the timeout.
func (l *Listener) Send(sql string, timeout time.Duration) error {
	if err := l.conn.SetWriteDeadline(time.Now().Add(timeout)); err != nil {
		return fmt.Errorf("sending LISTEN: %w", err)
	}
	if _, err := l.conn.Write(wire.AppendQuery(nil, sql)); err != nil {
		return fmt.Errorf("sending LISTEN: %w", err)
	}
	return nil
}

// Read reads until the connection ends, and says why it has. heard is called with each
// notification, as a whole message that may be kept, and answered at each ReadyForQuery, with the last error before
// it.
func (l *Listener) Read(heard func(n wire.Notification, message []byte), answered func(error)) error {
	r := bufio.NewReaderSize(l.conn, ListenerBuffer)
	var failure error
	for {
		var header [wire.HeaderSize]byte
		if _, err := io.ReadFull(r, header[:]); err != nil {
			if failure != nil {
				err = failure // its farewell
			}
			return fmt.Errorf("reading notifications: %w", err)
		}
		typ, size := wire.Header(header[:])
		if size < wire.HeaderSize || size > maxHeard {
			return fmt.Errorf("reading notifications: message %q with a length of %d bytes", typ, size-1)
		}
		message := append(make([]byte, 0, size), header[:]...)[:size]
		if _, err := io.ReadFull(r, message[wire.HeaderSize:]); err != nil {
			return fmt.Errorf("reading notifications: %w", err)
		}
		body := message[wire.HeaderSize:]
		switch typ {
		case wire.NotificationResponse:
			n, ok := wire.ParseNotification(body)
			if !ok {
				return errors.New("reading notifications: a malformed NotificationResponse")
			}
			heard(n, message)
		case wire.ErrorResponse:
			failure = &ServerError{body}
		case wire.ReadyForQuery:
			answered(failure)
			failure = nil
		}
	}
}

// Close ends the connection, and with it Read. Whether Postgres hears of it does not matter.
func (l *Listener) Close() {
	_ = l.conn.SetWriteDeadline(time.Now().Add(time.Second))
	_, _ = l.conn.Write(wire.AppendEmpty(nil, wire.Terminate))
	l.conn.Close()
}
