package loop

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Readiness bits as the poller reports them.
const (
	pollReadable = unix.EPOLLIN
	pollWritable = unix.EPOLLOUT
	pollBroken   = unix.EPOLLHUP | unix.EPOLLERR
	pollHangUp   = unix.EPOLLRDHUP | pollBroken
)

// interest is what every connection is registered for. EPOLLOUT is added only
// while bytes are pending: on a Unix socket it would otherwise wake the loop
// each time that the peer reads.
const interest = unix.EPOLLIN | unix.EPOLLRDHUP | unix.EPOLLET&0xffffffff

// poller is an epoll set. add, arm and remove may be called by any goroutine,
// wait by the loop's only.
type poller struct {
	fd     int // constant
	wakeFd int // an eventfd, registered with generation 0; constant
	events [256]unix.EpollEvent
}

func newPoller() (*poller, error) {
	fd, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("creating an epoll set: %w", err)
	}
	wake, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		unix.Close(fd)
		return nil, fmt.Errorf("creating an eventfd: %w", err)
	}
	p := &poller{fd: fd, wakeFd: wake}
	if err := p.add(wake, 0); err != nil {
		p.close()
		return nil, err
	}
	return p, nil
}

func (p *poller) close() {
	unix.Close(p.wakeFd)
	unix.Close(p.fd)
}

func (p *poller) control(op, fd int, gen, events uint32) error {
	ev := unix.EpollEvent{Events: events, Fd: int32(fd), Pad: int32(gen)}
	if err := unix.EpollCtl(p.fd, op, fd, &ev); err != nil {
		return fmt.Errorf("registering fd %d with epoll: %w", fd, err)
	}
	return nil
}

func (p *poller) add(fd int, gen uint32) error {
	return p.control(unix.EPOLL_CTL_ADD, fd, gen, interest)
}

// arm adds or takes away the wish to know when fd takes bytes again. It also
// makes the set report anew what fd is ready for.
func (p *poller) arm(fd int, gen uint32, writable bool) error {
	events := uint32(interest)
	if writable {
		events |= unix.EPOLLOUT
	}
	return p.control(unix.EPOLL_CTL_MOD, fd, gen, events)
}

func (p *poller) remove(fd int) error {
	return p.control(unix.EPOLL_CTL_DEL, fd, 0, 0)
}

// wait blocks for up to timeout milliseconds, for ever when it is negative,
// and returns how many events there are.
func (p *poller) wait(timeout int) (int, error) {
	// A look first, which needs not be told to the scheduler since it does not block: most of
	// the time under load there is something, and if not, it may be there by the end of it.
	n, err := p.call(syscall.RawSyscall6, 0)
	if n > 0 || err != nil || timeout == 0 {
		return n, err
	}
	return p.call(syscall.Syscall6, timeout)
}

type syscall6 func(trap, a1, a2, a3, a4, a5, a6 uintptr) (r1, r2 uintptr, err syscall.Errno)

func (p *poller) call(f syscall6, timeout int) (int, error) {
	n, _, errno := f(unix.SYS_EPOLL_PWAIT, uintptr(p.fd), uintptr(unsafe.Pointer(&p.events)),
		uintptr(len(p.events)), uintptr(timeout), 0, 0)
	if errno != 0 {
		if errno == unix.EINTR {
			return 0, nil
		}
		return 0, fmt.Errorf("waiting for events: %w", errno)
	}
	return int(n), nil
}

func (p *poller) event(i int) (fd int, gen, ready uint32) {
	ev := &p.events[i]
	return int(ev.Fd), uint32(ev.Pad), ev.Events
}

// wake makes wait return; any goroutine may call it.
func (p *poller) wake() {
	one := [8]byte{1}
	_, _ = unix.Write(p.wakeFd, one[:]) // EAGAIN means that it is awake already
}

func (p *poller) woken() {
	var count [8]byte
	_, _ = unix.Read(p.wakeFd, count[:])
}

// recv and send do not block, so they go past the Go scheduler's bookkeeping
// for system calls, which would cost as much as the shorter of them.

func recv(fd int, p []byte) (int, error) {
	for {
		n, _, errno := syscall.RawSyscall6(unix.SYS_RECVFROM, uintptr(fd), uintptr(unsafe.Pointer(unsafe.SliceData(p))), uintptr(len(p)), 0, 0, 0)
		switch errno {
		case 0:
			return int(n), nil
		case unix.EINTR:
		default:
			return 0, errno
		}
	}
}

// accept is accept4(2). Package unix would ask the system what kind of socket it is, too.
func accept(fd int) (accepted int, from netip.AddrPort, err error) {
	for {
		var sa unix.RawSockaddrAny
		size := uintptr(unix.SizeofSockaddrAny)
		n, _, errno := syscall.RawSyscall6(unix.SYS_ACCEPT4, uintptr(fd), uintptr(unsafe.Pointer(&sa)), uintptr(unsafe.Pointer(&size)),
			unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0, 0)
		switch errno {
		case 0:
			return int(n), addrPort(&sa), nil
		case unix.EINTR, unix.ECONNABORTED:
		default:
			return -1, from, errno
		}
	}
}

// addrPort is the zero value for what is no address of the Internet.
func addrPort(sa *unix.RawSockaddrAny) netip.AddrPort {
	port := func(p *uint16) uint16 { return binary.BigEndian.Uint16((*[2]byte)(unsafe.Pointer(p))[:]) }
	switch sa.Addr.Family {
	case unix.AF_INET:
		in := (*unix.RawSockaddrInet4)(unsafe.Pointer(sa))
		return netip.AddrPortFrom(netip.AddrFrom4(in.Addr), port(&in.Port))
	case unix.AF_INET6:
		in := (*unix.RawSockaddrInet6)(unsafe.Pointer(sa))
		return netip.AddrPortFrom(netip.AddrFrom16(in.Addr).Unmap(), port(&in.Port))
	}
	return netip.AddrPort{}
}

func send(fd int, p []byte) (int, error) {
	for {
		n, _, errno := syscall.RawSyscall6(unix.SYS_SENDTO, uintptr(fd), uintptr(unsafe.Pointer(unsafe.SliceData(p))), uintptr(len(p)), unix.MSG_NOSIGNAL, 0, 0)
		switch errno {
		case 0:
			return int(n), nil
		case unix.EINTR:
		default:
			return 0, errno
		}
	}
}
