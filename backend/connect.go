package backend

import (
	"context"
	"errors"
	"fmt"
	"net"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/pgebb/pgebb/internal/scram"
	"github.com/pgebb/pgebb/internal/wire"
)

// Target is where a server is and as whom we log in to it.
type Target struct {
	Network, Address string // "tcp" with host:port, or "unix" with a socket's path
	User, Database   string
	Passwords        []string // tried in order; one may be an MD5 hash, for servers that ask by MD5
	Keys             *Keys    // for SCRAM where there is no password; nil if there are none
	TLS              *TLS     // nil for none; nor is there any at a Unix socket
	Sealed           bool     // the password is never sent as it is where others could read it, and encryption is not done without for an error
	Params           []Param  // of the StartupMessage, besides user and database
	TCP              TCPOptions
	Attempt          func() // called before each login, one for each password that is tried; may be nil
}

// TCPOptions are options of a TCP connection, for both sides; TCP_NODELAY is always
// set. The zero value of an option leaves it to the system.
type TCPOptions struct {
	Keepalive   bool
	Idle        time.Duration // before the first probe
	Interval    time.Duration // between probes
	Probes      int           // unanswered ones before the connection is given up
	UserTimeout time.Duration // how long sent data may stay unacknowledged
	Congestion  string        // congestion control algorithm
}

// Apply sets the options on the socket of a connection, or on that of a listener, whose
// connections inherit them (Linux copies a listening socket for each, so none costs a
// call). On what is not TCP it does nothing.
func (o TCPOptions) Apply(socket any) error {
	var sc syscall.Conn
	switch s := socket.(type) {
	case *net.TCPConn:
		sc = s
	case *net.TCPListener:
		sc = s
	default:
		return nil
	}
	raw, err := sc.SyscallConn()
	if err != nil {
		return fmt.Errorf("setting TCP options: %w", err)
	}
	var failed error
	if err := raw.Control(func(fd uintptr) { failed = o.set(int(fd)) }); err != nil {
		failed = err
	}
	if failed != nil {
		return fmt.Errorf("setting TCP options: %w", failed)
	}
	return nil
}

func (o TCPOptions) set(fd int) error {
	keepalive := 0
	if o.Keepalive {
		keepalive = 1
	}
	if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_KEEPALIVE, keepalive); err != nil {
		return fmt.Errorf("keepalive: %w", err)
	}
	for _, option := range []struct {
		name  string
		opt   int
		value int64
	}{
		{"no delay", unix.TCP_NODELAY, 1},
		{"idle time before a probe", unix.TCP_KEEPIDLE, inSeconds(o.Idle)},
		{"interval of probes", unix.TCP_KEEPINTVL, inSeconds(o.Interval)},
		{"number of probes", unix.TCP_KEEPCNT, int64(o.Probes)},
		{"user timeout", unix.TCP_USER_TIMEOUT, o.UserTimeout.Milliseconds()},
	} {
		if option.value <= 0 {
			continue
		}
		if err := unix.SetsockoptInt(fd, unix.IPPROTO_TCP, option.opt, int(option.value)); err != nil {
			return fmt.Errorf("%s (%d): %w", option.name, option.value, err)
		}
	}
	if o.Congestion == "" {
		return nil
	}
	if err := unix.SetsockoptString(fd, unix.IPPROTO_TCP, unix.TCP_CONGESTION, o.Congestion); err != nil {
		return fmt.Errorf("congestion control %q: %w", o.Congestion, err)
	}
	return nil
}

// inSeconds rounds up, since the system knows no parts of a second.
func inSeconds(d time.Duration) int64 { return int64((d + time.Second - 1) / time.Second) }

// Session is a connection that is logged in, with nothing read beyond the first
// ReadyForQuery.
type Session struct {
	Conn   net.Conn // a *loop.TLS if it is encrypted
	PID    uint32   // 0 if the server gave no key
	Secret []byte   // 4 to 256 bytes, empty if the server gave no key
	Params []Param  // as reported, in order
}

// Leave ends a session that nobody needs. Whether Postgres hears of it does not matter:
// it notices that the connection is gone.
func (s *Session) Leave() {
	_, _ = s.Conn.Write(wire.AppendEmpty(nil, wire.Terminate))
	s.Conn.Close()
}

// Keys are what a client's SCRAM login leaves for logins to servers that keep the same
// verifier.
type Keys = scram.Keys

// Connect dials a server and logs in, with plain blocking calls until ctx ends. When
// the server says no, the error wraps a [ServerError]. Of several passwords each is
// tried with a connection of its own.
func Connect(ctx context.Context, t Target) (*Session, error) {
	passwords := t.Passwords
	if len(passwords) == 0 {
		passwords = []string{""}
	}
	var err error
	for _, password := range passwords {
		var s *Session
		s, err = connect(ctx, t, password)
		if err != nil && t.TLS != nil && !t.TLS.required && !t.Sealed && ctx.Err() == nil && tlsToBlame(err) {
			t.TLS = nil
			s, err = connect(ctx, t, password)
		}
		if err == nil {
			return s, nil
		}
		if !wrongPassword(err) {
			break
		}
	}
	return nil, err
}

// tlsToBlame reports whether a login may work without TLS: the handshake has failed, or
// pg_hba.conf has no entry for encrypted connections. libpq tries again as well where
// encryption is only preferred.
func tlsToBlame(err error) bool {
	var said *ServerError
	return errors.Is(err, errHandshake) || errors.As(err, &said) && said.Code() == "28000"
}

func connect(ctx context.Context, t Target, password string) (*Session, error) {
	conn, err := dial(ctx, t)
	if err != nil {
		return nil, err
	}
	if t.Attempt != nil {
		t.Attempt()
	}
	stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
	s, err := open(ctx, conn, t, password)
	if !stop() && err == nil {
		err = ctx.Err() // the deadline is set, or about to be
	}
	if err != nil {
		conn.Close()
		if ctx.Err() != nil {
			err = fmt.Errorf("%w (%w)", ctx.Err(), err)
		}
		return nil, err
	}
	return s, nil
}

// open logs in at a connection that is there.
func open(ctx context.Context, conn net.Conn, t Target, password string) (*Session, error) {
	conn, err := secure(ctx, conn, t)
	if err != nil {
		return nil, err
	}
	return logIn(conn, t, password)
}

// secure encrypts a connection if it is to be.
func secure(ctx context.Context, conn net.Conn, t Target) (net.Conn, error) {
	if t.TLS == nil || t.Network == "unix" {
		return conn, nil
	}
	host, _, err := net.SplitHostPort(t.Address)
	if err != nil {
		return nil, fmt.Errorf("asking for TLS: %w", err)
	}
	return t.TLS.encrypt(ctx, conn, host)
}

func dial(ctx context.Context, t Target) (net.Conn, error) {
	conn, err := (&net.Dialer{KeepAlive: -1}).DialContext(ctx, t.Network, t.Address) // Apply sets what is configured
	if err != nil {
		return nil, err // it says where to
	}
	if err := t.TCP.Apply(conn); err != nil {
		conn.Close()
		return nil, err
	}
	return conn, nil
}
