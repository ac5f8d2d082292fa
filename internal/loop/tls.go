package loop

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// TLS is a connection that is encrypted, at first with blocking calls like any
// net.Conn; [Conn.Init] puts it on a loop. What stands beneath the tls.Conn is a
// transport that from then on says "nothing there now" instead of waiting, which a
// tls.Conn takes for a temporary error and goes on from later.
//
// A tls.Conn cannot go on with a write that failed half-way. So the transport takes
// all there is, and what the socket does not take stays pending as with a plain
// connection.
type TLS struct {
	*tls.Conn
	transport transport
}

// Server starts the server's part of a handshake on a connection, of which head has
// been read already, and returns when it is done. The deadline of nc holds for it.
func Server(nc net.Conn, head []byte, cfg *tls.Config) (*TLS, error) {
	t := &TLS{transport: transport{Conn: nc, head: head}}
	t.Conn = tls.Server(&t.transport, cfg)
	return t.shakeHands(context.Background())
}

// Client starts the client's part of a handshake and returns when it is done, or ctx is.
func Client(ctx context.Context, nc net.Conn, cfg *tls.Config) (*TLS, error) {
	t := &TLS{transport: transport{Conn: nc}}
	t.Conn = tls.Client(&t.transport, cfg)
	return t.shakeHands(ctx)
}

// Encryption names the version of TLS and the cipher suite, as TLSv1.3/TLS_AES_128_GCM_SHA256;
// it is empty for a connection that is not encrypted. It must be called on the loop's goroutine.
func (c *Conn) Encryption() string {
	if c.tls == nil {
		return ""
	}
	state := c.tls.ConnectionState()
	return strings.Replace(tls.VersionName(state.Version), "TLS ", "TLSv", 1) + "/" + tls.CipherSuiteName(state.CipherSuite)
}

func (t *TLS) shakeHands(ctx context.Context) (*TLS, error) {
	if err := t.HandshakeContext(ctx); err != nil {
		return nil, fmt.Errorf("TLS handshake: %w", err)
	}
	t.transport.head = nil
	return t, nil
}

// transport is what a tls.Conn reads from and writes to.
type transport struct {
	net.Conn        // until the connection is on a loop, nil from then on
	head     []byte // to be read before anything else; nil once the handshake is done
	on       *Conn  // whose socket it is from then on
	dry      bool   // the socket is known to be empty, for as long as readOn runs
	lent     bool   // the tls.Conn has the loop's buffer, for as long as that
	room     int    // how many bytes readOn wants to take from the socket
	gather   bool   // what is written is gathered in gathered
	gathered []byte // ciphertext of a run of records, in the loop's buffer
	held     int    // bytes that were set aside, and are counted in the loop's parts
}

// nothing is the error of a read from an empty socket.
type nothing struct{}

func (nothing) Error() string   { return "nothing to read" }
func (nothing) Timeout() bool   { return true }
func (nothing) Temporary() bool { return true }

var _ net.Error = nothing{}

// errNothing is nothing, without an allocation for each.
var errNothing error = nothing{}

func (t *transport) Read(p []byte) (int, error) {
	if t.on == nil {
		if len(t.head) > 0 {
			n := copy(p, t.head)
			t.head = t.head[n:]
			return n, nil
		}
		return t.Conn.Read(p)
	}
	if t.dry {
		return 0, errNothing
	}
	p = p[:min(len(p), t.room)]
	n, dry, err := t.on.pull(p)
	switch {
	case err == unix.EAGAIN:
		t.ranDry()
		return 0, errNothing
	case err != nil:
		return 0, err
	case n == 0:
		return 0, io.EOF
	case dry:
		t.ranDry()
	}
	t.room = max(t.room-n, smallRoom)
	return n, nil
}

// ranDry notes that there is no more to read until the loop says so.
func (t *transport) ranDry() {
	t.dry = true
	t.on.flags &^= flagReadable
}

func (t *transport) Write(p []byte) (int, error) {
	switch {
	case t.on == nil:
		return t.Conn.Write(p)
	case !t.gather:
		if err := t.on.send(p); err != nil {
			return 0, err
		}
	case len(t.gathered)+len(p) > cap(t.gathered):
		if err := t.flush(); err != nil {
			return 0, err
		}
		fallthrough
	default:
		t.gathered = append(t.gathered, p...)
	}
	return len(p), nil
}

// SetWriteDeadline is for a connection that is not on a loop, where nothing waits.
func (t *transport) SetWriteDeadline(at time.Time) error {
	if t.on != nil {
		return nil // a tls.Conn sets one when it says goodbye
	}
	return t.Conn.SetWriteDeadline(at)
}

// flush sends what was gathered.
func (t *transport) flush() error {
	b := t.gathered
	t.gathered = b[:0]
	if len(b) == 0 {
		return nil
	}
	return t.on.send(b)
}

const (
	// maxPlain is the longest plaintext of a record in bytes (RFC 8446, 5.1), and
	// maxRecord the longest record, of TLS 1.2 (RFC 5246, 6.2.3), which may be longer.
	maxPlain  = 16 << 10
	maxRecord = 5 + maxPlain + 2048

	// recordsSize is the size in bytes of a loop's buffer for ciphertext. In more than
	// twice what a record and the start of another take, a bytes.Buffer makes room by
	// moving what it has instead of growing.
	recordsSize = 2*(2*maxRecord+1024) + 1024

	// smallRoom is what is read of a socket at least. A connection that is read into
	// less than that has only this much of the loop's buffer.
	smallRoom = 2 << 10
)

// handOver makes the connection one of a loop, and returns the blocking one beneath it.
func (t *TLS) handOver(c *Conn) net.Conn {
	nc := t.transport.Conn
	t.transport.Conn, t.transport.on = nil, c
	return nc
}

// arrive puts the connection on a loop. If something was read beyond what was asked
// for during the login, the loop reads it now: the system would not report it.
func (t *TLS) arrive(c *Conn, l *Loop) {
	if l.records == nil {
		l.records = make([]byte, recordsSize)
	}
	l.parts.Add(int64(t.transport.held))
	l.encrypted++
	if t.setAside(l) {
		c.flags |= flagReadable
		c.Resume()
	}
}

// forget takes the connection out of a loop's sums.
func (t *TLS) forget(l *Loop) {
	l.parts.Add(-int64(t.transport.held))
	l.encrypted--
}

// readOn is [Conn.Read] of a connection on a loop. It goes on until p is full or the
// socket is empty, since a tls.Conn returns one record at a time.
func (t *TLS) readOn(c *Conn, p []byte) (n int, more bool, err error) {
	l := c.loop.Load()
	t.transport.dry = false
	for n < len(p) {
		t.lend(l, len(p)-n)
		var m int
		m, err = t.Conn.Read(p[n:])
		n += m
		if err != nil || t.transport.dry && t.spent() {
			break
		}
	}
	left := t.setAside(l)
	switch {
	case err == nil:
		if left {
			c.flags |= flagReadable
		}
		return n, c.flags&flagReadable != 0, nil
	case err == errNothing:
		return n, false, nil
	case n > 0:
		// It comes again at the next read.
		c.flags |= flagReadable
		return n, true, nil
	case err == io.EOF:
		return 0, false, io.EOF
	}
	return 0, false, fmt.Errorf("reading: %w", err)
}

// writeOn is [Conn.Write] of a connection on a loop. What takes several records goes to
// the socket in one piece.
func (t *TLS) writeOn(c *Conn, p []byte) error {
	if len(p) > maxPlain {
		t.transport.gather, t.transport.gathered = true, c.loop.Load().records[:0]
	}
	_, err := t.Conn.Write(p)
	if t.transport.gather {
		if err == nil {
			err = t.transport.flush()
		}
		t.transport.gather, t.transport.gathered = false, nil
	}
	if err != nil {
		return fmt.Errorf("writing: %w", err)
	}
	return nil
}

// sayGoodbye tells the peer that its end of the stream is meant. It is left out if the
// socket takes nothing.
func (t *TLS) sayGoodbye(c *Conn) {
	if c.Pending() == 0 && t.CloseWrite() == nil && c.Pending() > 0 {
		c.dropPending()
		_ = c.arm(false) // the connection is at its end
	}
}
