package frontend

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strconv"
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

// acceptPause is how long accepting rests when the process has no descriptor left.
const acceptPause = 50 * time.Millisecond

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
		return f.listenUnix(filepath.Join(dir, ".s.PGSQL."+port))
	}
	return nil
}

func (f *Frontend) listen(network, address string) error {
	ln, err := net.Listen(network, address)
	if err != nil {
		return fmt.Errorf("listening for clients: %w", err)
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
	if conn, err := net.Dial("unix", path); err == nil {
		conn.Close()
		return fmt.Errorf("listening for clients: another process listens at %s", path)
	} else if errors.Is(err, syscall.ECONNREFUSED) {
		if err := os.Remove(path); err != nil {
			return fmt.Errorf("removing a stale socket: %w", err)
		}
	}
	if err := f.listen("unix", path); err != nil {
		return err
	}
	if err := os.Chmod(path, 0o777); err != nil {
		return fmt.Errorf("opening the Unix socket to all users: %w", err)
	}
	return nil
}

func (f *Frontend) accept(l *Listener) {
	defer close(l.done)
	full := false
	for {
		conn, err := l.Accept()
		switch {
		case err == nil:
			full = false
			go f.serve(conn)
		case errors.Is(err, net.ErrClosed):
			return
		case errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE):
			if !full {
				f.log.Error("no file descriptor is left for a client", "max_open_files", maxOpenFiles())
				full = true
			}
			time.Sleep(acceptPause)
		default:
			f.log.Warn("accepting a client", "error", err)
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
func backlog() string {
	b, err := os.ReadFile("/proc/sys/net/core/somaxconn")
	if err != nil {
		return "unknown"
	}
	return string(b[:max(len(b)-1, 0)])
}

// maxOpenFiles is the limit that Go has raised to the hard one at the start.
func maxOpenFiles() uint64 {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return 0
	}
	return limit.Cur
}

// setTCP sets the options of the configuration on a client's connection.
func setTCP(conn net.Conn, cfg *config.Config, log *slog.Logger) {
	if err := TCPOptions(cfg).Apply(conn); err != nil {
		log.Warn("client connection", "error", err)
	}
}

// TCPOptions are those of the configuration's [tcp] table, for both sides.
func TCPOptions(cfg *config.Config) backend.TCPOptions {
	return backend.TCPOptions{
		Keepalive: cfg.TCP.Keepalive, Idle: cfg.TCP.Time, Interval: cfg.TCP.Interval, Probes: cfg.TCP.Retries,
		UserTimeout: cfg.TCP.UserTimeout, Congestion: cfg.TCP.CongestionControl,
	}
}
