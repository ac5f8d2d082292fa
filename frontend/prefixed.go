package frontend

import (
	"net"
	"syscall"
)

// prefixed is a connection of which something was read already that its login is to read
// again. It belongs to the goroutine of the login.
type prefixed struct {
	net.Conn
	rest []byte
}

// Read implements [net.Conn].
func (p *prefixed) Read(b []byte) (int, error) {
	if len(p.rest) == 0 {
		return p.Conn.Read(b)
	}
	n := copy(b, p.rest)
	p.rest = p.rest[n:]
	return n, nil
}

// SyscallConn implements [syscall.Conn].
func (p *prefixed) SyscallConn() (syscall.RawConn, error) {
	return p.Conn.(syscall.Conn).SyscallConn()
}
