package loop

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"

	"golang.org/x/sys/unix"
)

// This file is for connections that become something else on their way: one that waits to be
// accepted becomes a login, one whose login has succeeded a client, and a login that takes long leaves
// the loop.

// AddListening is [Loop.Add] for a socket that listens. Its handler calls [Conn.Accept].
func (l *Loop) AddListening(c *Conn) error {
	if err := l.Add(c); err != nil {
		return err
	}
	c.flags |= flagBulk // it is not to be read ahead
	return nil
}

// Accept takes a connection that waits at a socket that listens; the error is [unix.EAGAIN] if
// none does. The address is the zero value for a Unix socket. What is accepted does not block.
func (c *Conn) Accept() (fd int, from netip.AddrPort, err error) {
	fd, from, err = accept(int(c.fd))
	if err == unix.EAGAIN {
		c.flags &^= flagReadable
	}
	return fd, from, err
}

// Become makes old, which is on the loop and not encrypted, the connection c of another handler. What is
// pending, and what is still to be read, is c's from then on; old is as if it were closed. It must be called
// on the loop's goroutine.
func (l *Loop) Become(old, c *Conn, h Handler) {
	old.settle()
	c.fd, c.gen, c.h, c.out, c.flags, c.ahead = old.fd, old.gen, h, old.out, old.flags&^flagQueued, old.ahead
	c.loop.Store(l)
	l.conns[c.fd] = c
	switch {
	case c.ahead == aheadElsewhere:
		l.early[c] = l.early[old]
		delete(l.early, old)
	case c.ahead != 0:
		l.batch.reads[c.ahead-1].c = c
	}
	old.fd, old.out, old.ahead, old.flags = -1, nil, 0, 0
	old.loop.Store(nil)
	if c.out != nil {
		_ = c.arm(true) // what the system has reported of it in this round was for old
	}
	c.Resume()
}

// Unread has the handler of a connection on the loop read p before anything else. It must be
// called on the loop's goroutine.
func (l *Loop) Unread(c *Conn, p []byte) {
	if len(p) == 0 {
		return
	}
	p = append(p[:len(p):len(p)], l.ahead(c)...)
	l.forgetAhead(c)
	l.keepEarly(c, p)
	c.flags |= flagReadable | flagMore
	c.Resume()
}

// Release takes a connection off the loop for use with blocking calls, and returns what was
// read of it ahead. It must not be encrypted, and have nothing pending; peer is who it says that it is
// connected to. The connection is closed if that fails. It must be called on the loop's goroutine.
func (l *Loop) Release(c *Conn, peer net.Addr) (conn net.Conn, unread []byte, err error) {
	if n := c.Pending(); n > 0 {
		c.Close()
		return nil, nil, fmt.Errorf("taking a connection off its loop: %d bytes are pending", n)
	}
	unread = append([]byte(nil), l.ahead(c)...)
	l.forgetAhead(c)
	if err := l.Remove(c); err != nil {
		c.Close()
		return nil, nil, err
	}
	conn = &released{os.NewFile(uintptr(c.fd), "client"), peer}
	c.fd = -1
	return conn, unread, nil
}

// released is a socket for blocking calls. Package net would need a second descriptor to make it one
// of its own, when there may be none left.
type released struct {
	*os.File
	peer net.Addr
}

// Read implements [net.Conn].
func (r *released) Read(p []byte) (int, error) {
	n, err := r.File.Read(p)
	return n, r.failed("read", err)
}

// Write implements [net.Conn].
func (r *released) Write(p []byte) (int, error) {
	n, err := r.File.Write(p)
	return n, r.failed("write", err)
}

// failed makes an error one of package net: who reads on after a deadline wants to know that it was
// one ([net.Error]).
func (r *released) failed(op string, err error) error {
	var p *os.PathError
	switch {
	case !errors.As(err, &p):
		return err // nil, or io.EOF
	case errors.Is(err, os.ErrClosed):
		err = net.ErrClosed
	default:
		err = p.Err
	}
	return &net.OpError{Op: op, Net: r.peer.Network(), Addr: r.peer, Err: err}
}

// RemoteAddr implements [net.Conn].
func (r *released) RemoteAddr() net.Addr { return r.peer }

// LocalAddr implements [net.Conn].
func (r *released) LocalAddr() (local net.Addr) {
	if raw, err := r.SyscallConn(); err == nil {
		_ = raw.Control(func(fd uintptr) {
			host, port := address(unix.Getsockname(int(fd)))
			local = &net.TCPAddr{IP: net.ParseIP(host), Port: port}
		})
	}
	return local
}
