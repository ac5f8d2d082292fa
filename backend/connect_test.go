package backend

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/pgebb/pgebb/internal/wire"
)

// listen is a server at an address that follows a script in each connection; the scripts
// end with the test.
func listen(t *testing.T, network, address string, follow func(*script)) Target {
	t.Helper()
	ln, err := net.Listen(network, address)
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			conn, err := ln.Accept()
			if err != nil {
				return
			}
			wg.Go(func() {
				defer conn.Close()
				follow(&script{Conn: conn})
			})
		}
	})
	t.Cleanup(func() {
		ln.Close()
		wg.Wait()
	})
	return Target{Network: network, Address: ln.Addr().String(), User: "u", Database: "d"}
}

// asking is a server that asks for a password in clear text, and knows one.
func asking(password string, asked chan<- string, otherwise []byte) func(*script) {
	return func(s *script) {
		s.startup()
		given := strings.TrimRight(string(s.ask(authCleartext, "")), "\x00")
		asked <- given
		if given == password {
			s.send(letIn, ready)
			return
		}
		s.send(otherwise)
	}
}

func TestOfSeveralPasswordsEachIsTried(t *testing.T) {
	other := wire.AppendFields(nil, wire.ErrorResponse, wire.Field{Type: 'S', Value: "FATAL"}, wire.Field{Type: 'C', Value: "3D000"}, wire.Field{Type: 'M', Value: "no such database"})
	for name, c := range map[string]struct {
		passwords, tried []string
		otherwise        []byte
		code             string
	}{
		"the first is right":      {[]string{"right", "b"}, []string{"right"}, no, ""},
		"the last is right":       {[]string{"a", "b", "right"}, []string{"a", "b", "right"}, no, ""},
		"none is right":           {[]string{"a", "b"}, []string{"a", "b"}, no, "28P01"},
		"another trouble":         {[]string{"a", "right"}, []string{"a"}, other, "3D000"},
		"the server is no server": {[]string{"a", "right"}, []string{"a"}, []byte("D\x00\x00\x00\x04"), ""},
	} {
		asked := make(chan string, len(c.passwords))
		target := listen(t, "tcp", "127.0.0.1:0", asking("right", asked, c.otherwise))
		target.Passwords = c.passwords
		s, err := Connect(context.Background(), target)
		if err == nil {
			s.Conn.Close()
		}
		close(asked)
		var tried []string
		for password := range asked {
			tried = append(tried, password)
		}
		var se *ServerError
		if errors.As(err, &se) != (c.code != "") || se != nil && se.Code() != c.code || (err == nil) != (tried[len(tried)-1] == "right") {
			t.Errorf("%s: %v", name, err)
		}
		if !slices.Equal(tried, c.tried) {
			t.Errorf("%s: the passwords %q are tried, want %q", name, tried, c.tried)
		}
	}
}

func TestConnectEndsWithItsContext(t *testing.T) {
	reached, ended := make(chan struct{}), make(chan error, 1)
	target := listen(t, "tcp", "127.0.0.1:0", func(s *script) {
		s.startup()
		close(reached)
		_, err := s.Read(make([]byte, 1)) // until our side goes
		ended <- err
	})
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() {
		<-reached
		cancel()
	}()
	if s, err := Connect(ctx, target); !errors.Is(err, context.Canceled) {
		t.Errorf("%v, %v", s, err)
	}
	if err := <-ended; !errors.Is(err, io.EOF) {
		t.Errorf("the server finds the connection's end: %v", err)
	}
	if s, err := Connect(ctx, target); !errors.Is(err, context.Canceled) {
		t.Errorf("with a context that has ended before: %v, %v", s, err)
	}
}

func TestASessionOutlivesTheContextOfItsLogin(t *testing.T) {
	target := listen(t, "unix", filepath.Join(t.TempDir(), ".s.PGSQL.1"), func(s *script) {
		s.startup()
		s.send(letIn, ready)
		_, _ = io.Copy(s, s)
	})
	ctx, cancel := context.WithCancel(context.Background())
	s, err := Connect(ctx, target)
	cancel()
	if err != nil {
		t.Fatal(err)
	}
	defer s.Conn.Close()
	if _, err := s.Conn.Write([]byte("ping")); err != nil {
		t.Fatal(err)
	}
	got := make([]byte, 4)
	if _, err := io.ReadFull(s.Conn, got); err != nil || string(got) != "ping" {
		t.Errorf("%q comes back, %v", got, err)
	}
}

func TestNobodyListens(t *testing.T) {
	target := Target{Network: "unix", Address: filepath.Join(t.TempDir(), ".s.PGSQL.1"), User: "u", Database: "d"}
	if _, err := Connect(context.Background(), target); err == nil || !strings.Contains(err.Error(), target.Address) {
		t.Errorf("the error does not say where: %v", err)
	}
	if err := Cancel(context.Background(), target, 1, []byte("abcd")); err == nil || !strings.Contains(err.Error(), target.Address) {
		t.Errorf("the error does not say where: %v", err)
	}
}

func TestCancelReturnsWhenTheServerHasClosed(t *testing.T) {
	secret := []byte("0123456789abcdef0123456789abcdef")
	for name, how := range map[string]func(net.Conn){
		"an end": func(c net.Conn) { c.Close() },
		"a reset": func(c net.Conn) {
			_ = c.(*net.TCPConn).SetLinger(0)
			c.Close()
		},
	} {
		got, let := make(chan []byte, 1), make(chan struct{})
		target := listen(t, "tcp", "127.0.0.1:0", func(s *script) {
			b := make([]byte, 12+len(secret))
			_, _ = io.ReadFull(s, b)
			got <- b
			<-let
			how(s.Conn)
		})
		done := make(chan error, 1)
		go func() { done <- Cancel(context.Background(), target, 7, secret) }()
		if b := <-got; string(b) != string(wire.AppendCancelRequest(nil, 7, secret)) || binary.BigEndian.Uint32(b) != uint32(len(b)) {
			t.Errorf("%s: the server is told %q", name, b)
		}
		select {
		case err := <-done:
			t.Errorf("%s: it does not wait for the server: %v", name, err)
		default:
		}
		close(let)
		if err := <-done; err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestCancelEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	target := listen(t, "tcp", "127.0.0.1:0", func(s *script) {
		_, _ = io.ReadFull(s, make([]byte, 16))
		cancel()
		_, _ = s.Read(make([]byte, 1))
	})
	if err := Cancel(ctx, target, 7, []byte("abcd")); err == nil {
		t.Error("a server that does not close has dealt with it")
	}
}

// allTCPOptions differ from what the system has. The interval is rounded up.
var allTCPOptions = TCPOptions{Keepalive: true, Idle: 11 * time.Second, Interval: 6500 * time.Millisecond, Probes: 5, UserTimeout: 9 * time.Second, Congestion: "reno"}

// hasOptions looks for allTCPOptions.
func hasOptions(t *testing.T, conn net.Conn) {
	t.Helper()
	raw, err := conn.(syscall.Conn).SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct{ level, option, want int }{
		"SO_KEEPALIVE":     {unix.SOL_SOCKET, unix.SO_KEEPALIVE, 1},
		"TCP_NODELAY":      {unix.IPPROTO_TCP, unix.TCP_NODELAY, 1},
		"TCP_KEEPIDLE":     {unix.IPPROTO_TCP, unix.TCP_KEEPIDLE, 11},
		"TCP_KEEPINTVL":    {unix.IPPROTO_TCP, unix.TCP_KEEPINTVL, 7},
		"TCP_KEEPCNT":      {unix.IPPROTO_TCP, unix.TCP_KEEPCNT, 5},
		"TCP_USER_TIMEOUT": {unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, 9000},
	} {
		var got int
		if err := raw.Control(func(fd uintptr) { got, err = unix.GetsockoptInt(int(fd), c.level, c.option) }); err != nil || got != c.want {
			t.Errorf("%s is %d, want %d (%v)", name, got, c.want, err)
		}
	}
	var algorithm string
	if err := raw.Control(func(fd uintptr) {
		algorithm, err = unix.GetsockoptString(int(fd), unix.IPPROTO_TCP, unix.TCP_CONGESTION)
	}); err != nil || algorithm != "reno" {
		t.Errorf("TCP_CONGESTION is %q, want reno (%v)", algorithm, err)
	}
}

func TestConnectionsInheritTheOptionsOfTheirListener(t *testing.T) {
	listening := net.ListenConfig{KeepAlive: -1}
	listening.SetMultipathTCP(false) // which has no user timeout
	ln, err := listening.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	if err := allTCPOptions.Apply(ln); err != nil {
		t.Fatal(err)
	}
	theirs, err := net.Dial("tcp", ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer theirs.Close()
	ours, err := ln.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer ours.Close()
	hasOptions(t, ours)
}

func TestTCPOptions(t *testing.T) {
	target := listen(t, "tcp", "127.0.0.1:0", func(s *script) { _, _ = s.Read(make([]byte, 1)) })
	conn, err := net.Dial("tcp", target.Address)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := allTCPOptions.Apply(conn); err != nil {
		t.Fatal(err)
	}
	hasOptions(t, conn)
	if err := (TCPOptions{Congestion: "nonesuch"}).Apply(conn); err == nil || !strings.Contains(err.Error(), "setting TCP options") {
		t.Errorf("an unknown congestion control algorithm: %v", err)
	}
	target.TCP = TCPOptions{Congestion: "nonesuch"}
	if _, err := Connect(context.Background(), target); err == nil {
		t.Error("a server is connected to without its options")
	}
	a, b := net.Pipe()
	defer a.Close()
	defer b.Close()
	if err := allTCPOptions.Apply(a); err != nil {
		t.Errorf("a connection that is not TCP: %v", err)
	}
}
