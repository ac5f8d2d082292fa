package frontend

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/pgebb/pgebb/backend"
	"github.com/pgebb/pgebb/config"
	"github.com/pgebb/pgebb/internal/loop"
)

// Listener accepts connections at one address. It lives on a loop, and so do the connections
// from the first: a goroutine that waits would be woken for each.
type Listener struct {
	conn    loop.Conn                                       // the socket; the loop's
	addr    net.Addr                                        // constant
	f       *Frontend                                       // constant
	next    func() (fd int, from netip.AddrPort, err error) // conn.Accept, but in tests; constant
	failing bool                                            // and that was logged; the loop's
	resting bool                                            // accepting is tried again later; the loop's
}

// acceptTurn is how many connections are accepted before others get their turn.
const acceptTurn = 64

// acceptPause is how long accepting rests when the system has nothing left for a
// connection, such as a descriptor.
const acceptPause = 50 * time.Millisecond

// maxUnixPath is the longest path of a Unix socket in bytes: sun_path ends with a NUL.
const maxUnixPath = len(syscall.RawSockaddrUnix{}.Path) - 1

// Listen starts accepting at the addresses of the configuration.
func (f *Frontend) Listen() error {
	cfg := f.cfg.Load()
	port := strconv.Itoa(cfg.General.Port)
	network := "tcp"
	if ip := net.ParseIP(cfg.General.Host); ip != nil && ip.To4() != nil {
		network = "tcp4" // 0.0.0.0 would be IPv6 as well
	}
	if err := f.listen(network, net.JoinHostPort(cfg.General.Host, port)); err != nil {
		return err
	}
	if dir := cfg.General.UnixSocketDir; dir != "" {
		if err := f.listenUnix(filepath.Join(dir, ".s.PGSQL."+port)); err != nil {
			f.closeListeners()
			return err
		}
	}
	return nil
}

func (f *Frontend) listen(network, address string) error {
	// Connections inherit their options from the socket that listens, so Go need not set any.
	listening := net.ListenConfig{KeepAlive: -1}
	listening.SetMultipathTCP(false) // it has no TCP_USER_TIMEOUT, and Postgres does not speak it either
	ln, err := listening.Listen(context.Background(), network, address)
	if errors.Is(err, syscall.EADDRINUSE) {
		return fmt.Errorf("listening for clients: %w: another process is there; stop it or change general.port", err)
	}
	if err != nil {
		return fmt.Errorf("listening for clients: %w", err)
	}
	if err := TCPOptions(f.cfg.Load()).Apply(ln); err != nil {
		ln.Close()
		return fmt.Errorf("listening for clients: %w: see [tcp]", err)
	}
	if _, err := f.acceptAt(ln, nil); err != nil {
		return fmt.Errorf("listening for clients: %w", err)
	}
	f.log.Info("listening", "network", network, "address", ln.Addr().String(), "backlog", backlog(), "max_open_files", maxOpenFiles())
	return nil
}

// listenUnix takes the place of a socket that nobody listens at any more.
func (f *Frontend) listenUnix(path string) error {
	if len(path) > maxUnixPath {
		return fmt.Errorf("listening for clients: the socket's path %s has %d bytes and may have %d: shorten unix_socket_dir", path, len(path), maxUnixPath)
	}
	if err := removeStale(path); err != nil {
		return fmt.Errorf("listening for clients: %w", err)
	}
	if err := f.listen("unix", path); err != nil {
		return err
	}
	if err := os.Chmod(path, 0o777); err != nil {
		return fmt.Errorf("opening the Unix socket to all users: %w", err)
	}
	return nil
}

// removeStale removes a socket that nobody listens at. Nothing else is ever removed: to
// connect to a file that is no socket is refused just the same.
func removeStale(path string) error {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return fmt.Errorf("looking for a stale socket: %w", err)
	case info.Mode().Type() != fs.ModeSocket:
		return fmt.Errorf("%s is in the way and is no socket: remove it, or change unix_socket_dir", path)
	}
	conn, err := net.Dial("unix", path)
	if err == nil {
		conn.Close()
		return fmt.Errorf("another process listens at %s", path)
	}
	if !errors.Is(err, syscall.ECONNREFUSED) {
		return nil // listening will say what is wrong
	}
	if err := os.Remove(path); err != nil {
		return fmt.Errorf("removing a stale socket: %w", err)
	}
	return nil
}

// acceptAt puts a socket that listens on a loop. next is what accepts there; nil for the system's call.
func (f *Frontend) acceptAt(ln net.Listener, next func(*Listener) (int, netip.AddrPort, error)) (l *Listener, err error) {
	l = &Listener{addr: ln.Addr(), f: f}
	if unixSocket, ok := ln.(*net.UnixListener); ok {
		unixSocket.SetUnlinkOnClose(false) // it listens on
	}
	if l.next = l.conn.Accept; next != nil {
		l.next = func() (int, netip.AddrPort, error) { return next(l) }
	}
	if err = l.conn.InitListening(ln, l); err != nil {
		l.unlink()
		return nil, err
	}
	on := f.loops.Loops()[0]
	if !on.Call(func() { err = on.AddListening(&l.conn) }) {
		err = net.ErrClosed
	}
	if err != nil {
		l.conn.Close()
		l.unlink()
		return nil, err
	}
	f.mu.Lock()
	f.listeners = append(f.listeners, l)
	f.mu.Unlock()
	return l, nil
}

// Readable implements [loop.Handler].
func (l *Listener) Readable() {
	if l.resting {
		return
	}
	for range acceptTurn {
		fd, from, err := l.next()
		switch {
		case err == nil:
			l.f.welcome(fd, from, l.conn.Loop())
		case err == unix.EAGAIN:
			l.failing = false
			return
		default:
			l.rest(err)
			return
		}
	}
	l.conn.Resume()
}

// rest tries again later.
func (l *Listener) rest(err error) {
	if !l.failing {
		l.f.log.Error("clients cannot be accepted", "error", err, "max_open_files", maxOpenFiles())
	}
	l.failing, l.resting = true, true
	on := l.conn.Loop()
	time.AfterFunc(acceptPause, func() {
		on.Post(func() {
			if l.resting = false; !l.conn.Closed() {
				l.Readable()
			}
		})
	})
}

// Drained implements [loop.Handler].
func (l *Listener) Drained() {}

// Broken implements [loop.Handler].
func (l *Listener) Broken(error) {}

// Close stops accepting. It must not be called on a loop.
func (l *Listener) Close() {
	if on := l.conn.Loop(); on != nil {
		on.Call(l.conn.Close)
	}
	l.unlink()
}

// unlink removes the file of a Unix socket.
func (l *Listener) unlink() {
	if l.addr.Network() == "unix" {
		_ = os.Remove(l.addr.String()) // there is nothing to be done about an error
	}
}

// backlog is how many connections wait to be accepted at most; Go asks for as many
// as the system allows.
func backlog() int {
	b, err := os.ReadFile("/proc/sys/net/core/somaxconn")
	if err != nil {
		return 0
	}
	n, _ := strconv.Atoi(strings.TrimSpace(string(b))) // 0 if it is not known
	return n
}

// maxOpenFiles is the limit that Go has raised to the hard one at the start.
func maxOpenFiles() uint64 {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return 0
	}
	return limit.Cur
}

// TCPOptions are those of the configuration's [tcp] table, for both sides.
func TCPOptions(cfg *config.Config) backend.TCPOptions {
	return backend.TCPOptions{
		Keepalive: cfg.TCP.Keepalive, Idle: cfg.TCP.Time, Interval: cfg.TCP.Interval, Probes: cfg.TCP.Retries,
		UserTimeout: cfg.TCP.UserTimeout, Congestion: cfg.TCP.CongestionControl,
	}
}
