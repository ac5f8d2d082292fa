package loop

import (
	"errors"
	"fmt"
	"io"
	"net"
	"sync/atomic"
	"syscall"

	"golang.org/x/sys/unix"
)

// Handler is what a connection is for. Its methods run on the goroutine of the
// connection's loop and must not block.
type Handler interface {
	// Readable says that there are bytes, or the end of the stream, to read. A
	// handler that does not read now calls [Conn.Resume] when it wants to.
	Readable()
	// Drained says that the peer has taken all the bytes that were pending.
	Drained()
	// Broken says that pending bytes cannot be delivered. The handler closes
	// the connection; it is not called by Write, which returns the error.
	Broken(err error)
}

// Conn is a non-blocking socket on a loop. The zero value is not usable: it is
// made with [Conn.Init] and given to a loop with [Loop.Add]. It is embedded by
// value in what handles it, so that an idle connection is one object. It holds
// no buffer but the bytes that its peer does not take.
type Conn struct {
	fd    int32                // constant after Init; -1 once closed
	gen   uint32               // tells a new connection from a stale event for its fd
	loop  atomic.Pointer[Loop] // written in a handover only, see [Loop.Add]
	h     Handler              // constant after Init
	tls   *TLS                 // nil for a plain connection; constant after Init
	out   *chunk               // pending: what the socket did not take, nil if nothing
	flags connFlags
	ahead uint8 // where bytes are that were read ahead, see batch; 0 if none
}

type connFlags uint16

const (
	flagReadable connFlags = 1 << iota // there may be more to read
	flagHangUp                         // the peer ended its side: read up to the end
	flagBroken                         // the connection is reset, or closed on both sides
	flagArmed                          // registered for writability
	flagQueued                         // on the loop's list of connections to go on with
	flagPutOff                         // a write to it is put off to the end of the round
	flagBulk                           // the last time that it was read there was much
	flagMore                           // there may be more to read than what was read ahead
	flagEarly                          // out holds what was read ahead, while it is handed over
)

// Init takes over the socket of a connection that was used with blocking
// calls until now; nc is closed whether or not that works. Nothing may have
// been read from the socket beyond what nc's user has dealt with, unless nc is a
// [TLS], which goes on being encrypted on the loop.
func (c *Conn) Init(nc net.Conn, h Handler) error {
	if t, ok := nc.(*TLS); ok {
		c.tls = t
		nc = t.handOver(c)
	}
	defer nc.Close()
	return c.duplicate(nc, h)
}

// InitListening is [Conn.Init] for a socket that listens, and is for [Loop.AddListening]. ln is closed,
// and the socket listens on: the runtime, which has sockets of its own watched whether or not
// anybody waits for them, would wake up for each connection, too.
func (c *Conn) InitListening(ln net.Listener, h Handler) error {
	defer ln.Close()
	return c.duplicate(ln, h)
}

// duplicate makes a descriptor of the connection's own for a socket.
func (c *Conn) duplicate(socket any, h Handler) error {
	sc, ok := socket.(syscall.Conn)
	if !ok {
		return fmt.Errorf("connection of type %T has no file descriptor", socket)
	}
	raw, err := sc.SyscallConn()
	if err != nil {
		return fmt.Errorf("taking over a connection: %w", err)
	}
	dup := -1
	if cerr := raw.Control(func(fd uintptr) {
		dup, err = unix.FcntlInt(fd, unix.F_DUPFD_CLOEXEC, 0)
	}); cerr != nil {
		err = cerr
	}
	if err != nil {
		return fmt.Errorf("taking over a connection: %w", err)
	}
	c.fd, c.h = int32(dup), h
	return nil
}

// Take takes over a non-blocking socket that has just been accepted. It is the connection's
// from then on.
func (c *Conn) Take(fd int, h Handler) { c.fd, c.h = int32(fd), h }

// Loop is the loop that the connection lives on, nil while it is handed over.
// Any goroutine may ask; only the loop itself can rely on the answer.
func (c *Conn) Loop() *Loop { return c.loop.Load() }

// Closed reports whether Close was called.
func (c *Conn) Closed() bool { return c.fd < 0 }

// Pending is the number of bytes that the peer has not taken yet.
func (c *Conn) Pending() int {
	c.settle()
	if c.out == nil {
		return 0
	}
	return len(c.out.rest())
}

// HungUp reports whether the peer has ended its side of the stream; bytes may be
// left to read all the same.
func (c *Conn) HungUp() bool { return c.flags&flagHangUp != 0 }

// Gone reports whether the connection was reset, so that nobody would get what is
// written to it.
func (c *Conn) Gone() bool { return c.flags&flagBroken != 0 }

// Read reads once. more is false when the socket is known to be empty, so that
// no call is spent on finding that out; the error is io.EOF at the end of the
// stream.
func (c *Conn) Read(p []byte) (n int, more bool, err error) {
	if c.fd < 0 {
		return 0, false, net.ErrClosed
	}
	if c.tls != nil {
		return c.tls.readOn(c, p)
	}
	n, dry, err := c.pull(p)
	switch {
	case err == unix.EAGAIN:
		c.flags &^= flagReadable
		return 0, false, nil
	case err != nil:
		return 0, false, fmt.Errorf("reading: %w", err)
	case n == 0:
		return 0, false, io.EOF
	case dry:
		c.flags &^= flagReadable
	}
	return n, !dry, nil
}

// pull takes what there is, as it came; dry reports that there is no more.
func (c *Conn) pull(p []byte) (n int, dry bool, err error) {
	if c.ahead != 0 {
		n, dry = c.loop.Load().takeAhead(c, p)
		return n, dry, nil
	}
	n, err = recv(int(c.fd), p)
	if n < aheadSize {
		c.flags &^= flagBulk
	}
	return n, n < len(p) && c.flags&flagHangUp == 0, err
}

// Write sends p. What the socket does not take is copied and stays pending;
// the caller stops producing while [Conn.Pending] is above zero.
func (c *Conn) Write(p []byte) error {
	if c.fd < 0 {
		return net.ErrClosed
	}
	if c.tls != nil {
		return c.tls.writeOn(c, p)
	}
	return c.send(p)
}

// send is Write for what goes onto the wire as it is.
func (c *Conn) send(p []byte) error {
	if c.out != nil {
		c.keep(p)
		return nil
	}
	if l := c.loop.Load(); l.batch.open {
		if len(p) <= putOffSize {
			l.putOff(c, p)
			return nil
		}
		if c.settle(); c.out != nil {
			c.keep(p)
			return nil
		}
	}
	n, err := send(int(c.fd), p)
	if err != nil && err != unix.EAGAIN {
		return fmt.Errorf("writing: %w", err)
	}
	if n == len(p) {
		return nil
	}
	c.keep(p[n:])
	return c.arm(true)
}

// keep adds a copy of p to the pending bytes, in a chunk of the right size.
func (c *Conn) keep(p []byte) {
	l := c.loop.Load()
	if c.out == nil {
		c.out = l.chunks.get(len(p))
		l.addPending(int64(cap(c.out.b)))
		l.pendingChunks++
	}
	before := cap(c.out.b)
	c.out.b = append(c.out.b, p...)
	l.addPending(int64(cap(c.out.b) - before))
}

// flush sends pending bytes when the socket takes some again.
func (c *Conn) flush() error {
	n, err := send(int(c.fd), c.out.rest())
	if err == unix.EAGAIN {
		return nil
	}
	if err != nil {
		return fmt.Errorf("writing: %w", err)
	}
	c.out.off += n
	if c.out.off < len(c.out.b) {
		return nil
	}
	c.dropPending()
	return c.arm(false)
}

func (c *Conn) dropPending() {
	if c.out == nil {
		return
	}
	l := c.loop.Load()
	l.addPending(-int64(cap(c.out.b)))
	l.pendingChunks--
	l.chunks.put(c.out)
	c.out = nil
}

func (c *Conn) arm(writable bool) error {
	if writable {
		c.flags |= flagArmed
	} else {
		c.flags &^= flagArmed
	}
	return c.loop.Load().poll.arm(int(c.fd), c.gen, writable)
}

// Resume makes the loop call Readable soon if there may be anything to read.
func (c *Conn) Resume() {
	if c.flags&(flagReadable|flagQueued) == flagReadable && c.fd >= 0 {
		c.flags |= flagQueued
		l := c.loop.Load()
		l.again = append(l.again, c)
	}
}

// Close closes the socket and drops what is pending. It is safe to call twice.
func (c *Conn) Close() {
	if c.fd < 0 {
		return
	}
	if l := c.loop.Load(); l != nil {
		c.settle()
		c.dropPending()
		l.forgetAhead(c)
		if c.tls != nil {
			c.tls.forget(l)
		}
		l.forget(c)
	}
	unix.Close(int(c.fd))
	c.fd = -1
}

// Reset closes the socket so that the peer sees a reset where the system
// allows it, instead of an orderly end.
func (c *Conn) Reset() {
	if c.fd >= 0 {
		c.settle()
		_ = unix.SetsockoptLinger(int(c.fd), unix.SOL_SOCKET, unix.SO_LINGER, &unix.Linger{Onoff: 1})
	}
	c.Close()
}

// EndWrite ends our side of the stream; the peer reads up to here and then the
// end, while we can go on reading.
func (c *Conn) EndWrite() error {
	if c.fd < 0 {
		return net.ErrClosed
	}
	if c.tls != nil {
		c.tls.sayGoodbye(c)
	}
	c.settle()
	if err := unix.Shutdown(int(c.fd), unix.SHUT_WR); err != nil && !errors.Is(err, unix.ENOTCONN) {
		return fmt.Errorf("ending the stream: %w", err)
	}
	return nil
}

// RemoteAddr asks the system for the peer's address. It is not kept, since
// only the console wants to know. Any goroutine may call it while the
// connection is open.
func (c *Conn) RemoteAddr() (host string, port int) { return address(unix.Getpeername(int(c.fd))) }

// LocalAddr is RemoteAddr for our end.
func (c *Conn) LocalAddr() (host string, port int) { return address(unix.Getsockname(int(c.fd))) }

func address(sa unix.Sockaddr, err error) (host string, port int) {
	if err != nil {
		return "", 0
	}
	switch sa := sa.(type) {
	case *unix.SockaddrInet4:
		return net.IP(sa.Addr[:]).String(), sa.Port
	case *unix.SockaddrInet6:
		return net.IP(sa.Addr[:]).String(), sa.Port
	}
	return "unix", 0
}
