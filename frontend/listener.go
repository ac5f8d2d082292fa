package frontend

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/pgebb/pgebb/backend"
	"github.com/pgebb/pgebb/config"
)

// Listener accepts connections at one address. Its goroutine ends with Close.
type Listener struct {
	net.Listener
	done chan struct{}
}

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
	l := &Listener{ln, make(chan struct{})}
	f.mu.Lock()
	f.listeners = append(f.listeners, l)
	f.mu.Unlock()
	f.log.Info("listening", "network", network, "address", ln.Addr().String(), "backlog", backlog(), "max_open_files", maxOpenFiles())
	go f.accept(l)
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

func (f *Frontend) accept(l *Listener) {
	defer close(l.done)
	failing := false
	for {
		conn, err := l.Accept()
		switch {
		case err == nil:
			failing = false
			go f.serve(conn)
		case errors.Is(err, net.ErrClosed):
			return
		default:
			if !failing {
				f.log.Error("clients cannot be accepted", "error", err, "max_open_files", maxOpenFiles())
				failing = true
			}
			time.Sleep(acceptPause)
		}
	}
}

// Close stops accepting; it returns when the goroutine has ended.
func (l *Listener) Close() {
	_ = l.Listener.Close() // there is nothing to be done about an error
	<-l.done
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
