package frontend

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/pgebb/pgebb/backend/backendtest"
	"github.com/pgebb/pgebb/config"
	"github.com/pgebb/pgebb/internal/leak"
	"github.com/pgebb/pgebb/internal/loop"
	"github.com/pgebb/pgebb/internal/querylog"
	"github.com/pgebb/pgebb/internal/testlog"
	"github.com/pgebb/pgebb/internal/wire"
	"github.com/pgebb/pgebb/pool"
)

// newFrontend is a frontend before a fake Postgres, at a free port and, if there is a
// folder, a Unix socket in it. It ends with the test, which must not leave anything
// behind.
func newFrontend(t testing.TB, dir string, log io.Writer) *Frontend {
	t.Helper()
	leak.Goroutines(t)
	leak.FDs(t)
	fake, err := backendtest.Start()
	if err != nil {
		t.Fatal(err)
	}
	loops, err := loop.NewGroup(1, nil)
	if err != nil {
		t.Fatal(err)
	}
	cfg := loadConfig(t, "host = \"127.0.0.1\"\nauth_type = \"trust\"\n",
		fmt.Sprintf("[admin]\npassword = \"x\"\n[[databases]]\nname = \"d\"\nhost = \"127.0.0.1\"\nport = %d\n", fake.Port()),
		"[[users]]\nname = \"u\"\npassword = \"p\"\ndatabase = \"d\"\n")
	cfg.General.Port, cfg.General.UnixSocketDir = 0, dir
	logger := slog.New(slog.NewTextHandler(log, nil))
	registry := pool.NewRegistry(loops, cfg, TCPOptions(cfg), logger)
	f := New(cfg, Options{Loops: loops, Registry: registry, Log: logger, Queries: querylog.New(io.Discard, logger)})
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		f.Drain(ctx)
		f.Close()
		registry.Close(ctx)
		loops.Stop()
		fake.Stop()
	})
	return f
}

// address is where the frontend's i-th listener is.
func (f *Frontend) address(i int) net.Addr { return f.listeners[i].addr }

// dial connects to an address; the connection is closed at the end of the test.
func dial(t *testing.T, a net.Addr) net.Conn {
	t.Helper()
	conn, err := net.Dial(a.Network(), a.String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(20 * time.Second)); err != nil {
		t.Fatal(err)
	}
	return conn
}

// logInAt logs in as who is trusted, and returns the connection when it is ready for
// queries.
func logInAt(t *testing.T, a net.Addr) net.Conn {
	t.Helper()
	conn := dial(t, a)
	if _, err := conn.Write(packet(wire.Version30, "user", "u", "database", "d")); err != nil {
		t.Fatal(err)
	}
	for {
		var header [wire.HeaderSize]byte
		if _, err := io.ReadFull(conn, header[:]); err != nil {
			t.Fatalf("logging in at %v: %v", a, err)
		}
		typ, size := wire.Header(header[:])
		body := make([]byte, size-wire.HeaderSize)
		if _, err := io.ReadFull(conn, body); err != nil || typ == wire.ErrorResponse {
			t.Fatalf("logging in at %v: %q, %v", a, body, err)
		}
		if typ == wire.ReadyForQuery {
			return conn
		}
	}
}

func TestListeningAtAPortAndASocket(t *testing.T) {
	dir := t.TempDir()
	f := newFrontend(t, dir, io.Discard)
	if err := f.Listen(); err != nil {
		t.Fatal(err)
	}
	for i, network := range []string{"tcp", "unix"} {
		if got := f.address(i).Network(); got != network {
			t.Errorf("listener %d is for %s", i, got)
		}
		logInAt(t, f.address(i))
	}
	info, err := os.Stat(filepath.Join(dir, ".s.PGSQL.0"))
	if err != nil || info.Mode().Perm() != 0o777 {
		t.Errorf("the socket is not for all users: %v, %v", info, err)
	}
}

func TestAStaleSocketIsReplaced(t *testing.T) {
	dir := t.TempDir()
	stale, err := net.ListenUnix("unix", &net.UnixAddr{Name: filepath.Join(dir, ".s.PGSQL.0"), Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	stale.SetUnlinkOnClose(false)
	stale.Close()
	f := newFrontend(t, dir, io.Discard)
	if err := f.Listen(); err != nil {
		t.Fatal(err)
	}
	logInAt(t, f.address(1))
}

func TestPlacesWhereNobodyCanListen(t *testing.T) {
	long := "/" + strings.Repeat("long", 30)
	for name, c := range map[string]struct {
		prepare func(t *testing.T, path string)
		dir     string
		want    string
	}{
		"another process":   {prepare: occupy, want: "another process listens at"},
		"a file":            {prepare: put, want: "is in the way and is no socket"},
		"a folder":          {prepare: func(t *testing.T, path string) { must(t, os.Mkdir(path, 0o755)) }, want: "is in the way and is no socket"},
		"a link to a file":  {prepare: func(t *testing.T, path string) { put(t, path+".x"); must(t, os.Symlink(path+".x", path)) }, want: "is in the way and is no socket"},
		"no folder":         {dir: "/nonexistent", want: "/nonexistent/.s.PGSQL.0"},
		"a path too long":   {dir: long, want: "shorten unix_socket_dir"},
		"a file for folder": {dir: "/dev/null", want: "looking for a stale socket"},
	} {
		t.Run(strings.ReplaceAll(name, " ", "-"), func(t *testing.T) {
			dir := c.dir
			if dir == "" {
				dir = t.TempDir()
			}
			path := filepath.Join(dir, ".s.PGSQL.0")
			if c.prepare != nil {
				c.prepare(t, path)
			}
			before, _ := os.Lstat(path)
			f := newFrontend(t, dir, io.Discard)
			if err := f.Listen(); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("the error is %v, want %q", err, c.want)
			}
			if len(f.listeners) > 0 {
				t.Error("it listens at the port all the same")
			}
			if after, _ := os.Lstat(path); before != nil && (after == nil || !os.SameFile(before, after)) {
				t.Errorf("what was there is not there any more: %v", after)
			}
		})
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// put makes a file that nobody must touch.
func put(t *testing.T, path string) {
	t.Helper()
	must(t, os.WriteFile(path, []byte("precious"), 0o600))
}

// occupy listens at a path until the end of the test.
func occupy(t *testing.T, path string) {
	t.Helper()
	ln, err := net.Listen("unix", path)
	must(t, err)
	t.Cleanup(func() { ln.Close() })
}

func TestAPortThatIsTaken(t *testing.T) {
	ln, err := net.Listen("tcp4", "127.0.0.1:0")
	must(t, err)
	defer ln.Close()
	f := newFrontend(t, t.TempDir(), io.Discard)
	f.cfg.Load().General.Port = ln.Addr().(*net.TCPAddr).Port
	if err := f.Listen(); err == nil || !errors.Is(err, syscall.EADDRINUSE) || !strings.Contains(err.Error(), ln.Addr().String()) {
		t.Errorf("the error is %v", err)
	}
}

func TestIPv6(t *testing.T) {
	f := newFrontend(t, "", io.Discard)
	f.cfg.Load().General.Host = "::1"
	if err := f.Listen(); err != nil {
		// A machine without IPv6 says so.
		if !errors.Is(err, syscall.EADDRNOTAVAIL) && !errors.Is(err, syscall.EAFNOSUPPORT) {
			t.Error(err)
		}
		return
	}
	logInAt(t, f.address(0))
}

func TestCloseEndsListenersAndLogins(t *testing.T) {
	dir := t.TempDir()
	f := newFrontend(t, dir, io.Discard)
	must(t, f.Listen())
	tcp, unix := f.address(0), f.address(1)
	half := dial(t, tcp)
	_, err := half.Write([]byte{0, 0, 0, 8, 0x04, 0xd2, 0x16, 0x2f})
	must(t, err)
	answer := make([]byte, 1)
	if _, err := io.ReadFull(half, answer); err != nil || answer[0] != 'N' {
		t.Fatalf("%q, %v", answer, err)
	}
	f.Close()
	if n, err := half.Read(answer); n > 0 || err == nil {
		t.Errorf("who is in the middle of the login is told %q, %v", answer[:n], err)
	}
	for _, a := range []net.Addr{tcp, unix} {
		if conn, err := net.Dial(a.Network(), a.String()); err == nil {
			conn.Close()
			t.Errorf("%v still accepts", a)
		}
	}
	if _, err := os.Lstat(unix.String()); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the socket is still there: %v", err)
	}
}

func TestNothingIsWrittenToACancelRequest(t *testing.T) {
	f := newFrontend(t, "", io.Discard)
	must(t, f.Listen())
	for name, request := range map[string][]byte{
		"of nobody":         wire.AppendCancelRequest(nil, 7, []byte("abcd")),
		"with a long key":   wire.AppendCancelRequest(nil, 7, make([]byte, 256)),
		"after SSLRequest":  append([]byte{0, 0, 0, 8, 0x04, 0xd2, 0x16, 0x2f}, wire.AppendCancelRequest(nil, 7, []byte("abcd"))...),
		"that is too short": wire.AppendCancelRequest(nil, 7, nil),
	} {
		conn := dial(t, f.address(0))
		_, err := conn.Write(request)
		must(t, err)
		if got, err := io.ReadAll(conn); err != nil || string(bytes.TrimPrefix(got, []byte("N"))) != "" {
			t.Errorf("%s: %q comes back, %v", name, got, err)
		}
	}
}

// TestWhoOnlyLooksIsNotLogged has somebody look if the port is open, somebody who wants
// to know if there is a password, and somebody who sends what is no login.
func TestWhoOnlyLooksIsNotLogged(t *testing.T) {
	var log testlog.Buffer
	f := newFrontend(t, "", &log)
	f.auth.Update(authConfigFor(t, "scram"))
	for i, c := range []struct {
		says   []byte
		logged int // lines in all
	}{{nil, 0}, {packet(wire.Version30, "user", "one", "database", "d"), 0}, {[]byte("GET / HTTP/1.1"), 1}, {[]byte{0, 0}, 2}} {
		conn := &script{Reader: bytes.NewReader(c.says), Conn: quiet{}}
		f.serve(conn, loop.Now())
		if n := log.Count("login failed"); n != c.logged {
			t.Errorf("after connection %d, %d failed logins are logged, want %d: %s", i, n, c.logged, log.String())
		}
	}
}

// quiet is a connection without an address that can be closed.
type quiet struct{ net.Conn }

func (quiet) Close() error         { return nil }
func (quiet) RemoteAddr() net.Addr { return nil }

func TestAcceptingGoesOnWhenThereAreDescriptorsAgain(t *testing.T) {
	var log testlog.Buffer
	f := newFrontend(t, "", &log)
	ln, err := net.Listen("tcp4", "127.0.0.1:0")
	must(t, err)
	failures, calls := 3, 0
	_, err = f.acceptAt(ln, func(l *Listener) (int, netip.AddrPort, error) {
		if calls++; calls <= failures {
			return -1, netip.AddrPort{}, unix.EMFILE
		}
		return l.conn.Accept()
	})
	must(t, err)
	for range 50 { // each is an event
		dial(t, f.address(0))
	}
	logInAt(t, f.address(0))
	f.closeListeners()
	if calls > failures+51+10 {
		t.Errorf("accepting is tried %d times", calls)
	}
	if n := strings.Count(log.String(), "clients cannot be accepted"); n != 1 {
		t.Errorf("it is logged %d times: %s", n, log.String())
	}
}

// TestTheSocketThatListensHasTheTCPOptions, which clients inherit (package backend tests that).
func TestTheSocketThatListensHasTheTCPOptions(t *testing.T) {
	f := newFrontend(t, "", io.Discard)
	cfg := *f.cfg.Load()
	cfg.TCP.Keepalive, cfg.TCP.Retries, cfg.TCP.UserTimeout = true, 7, 4*time.Second
	f.cfg.Store(&cfg)
	if err := f.Listen(); err != nil {
		t.Fatal(err)
	}
	fd := listeningSocket(t, f.address(0))
	for name, c := range map[string]struct{ level, option, want int }{
		"SO_KEEPALIVE":     {unix.SOL_SOCKET, unix.SO_KEEPALIVE, 1},
		"TCP_KEEPCNT":      {unix.IPPROTO_TCP, unix.TCP_KEEPCNT, 7},
		"TCP_USER_TIMEOUT": {unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, 4000},
	} {
		if got, err := unix.GetsockoptInt(fd, c.level, c.option); err != nil || got != c.want {
			t.Errorf("%s is %d, want %d (%v)", name, got, c.want, err)
		}
	}
}

// listeningSocket is the descriptor of the socket of this process that listens at a port of IPv4.
func listeningSocket(t *testing.T, addr net.Addr) int {
	t.Helper()
	open, err := os.ReadDir("/proc/self/fd")
	must(t, err)
	for _, entry := range open {
		fd, err := strconv.Atoi(entry.Name())
		must(t, err)
		bound, err := unix.Getsockname(fd)
		if err != nil {
			continue // it is no socket
		}
		listens, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_ACCEPTCONN)
		if in, ok := bound.(*unix.SockaddrInet4); ok && err == nil && listens == 1 && in.Port == addr.(*net.TCPAddr).Port {
			return fd
		}
	}
	t.Fatalf("nothing listens at %v", addr)
	return -1
}

func TestTCPOptionsThatAreNoneStopTheStart(t *testing.T) {
	f := newFrontend(t, "", io.Discard)
	cfg := *f.cfg.Load()
	cfg.TCP.CongestionControl = "nonesuch"
	f.cfg.Store(&cfg)
	if err := f.Listen(); err == nil || !strings.Contains(err.Error(), `congestion control "nonesuch"`) || !strings.Contains(err.Error(), "[tcp]") {
		t.Errorf("listening: %v", err)
	}
}

func TestTCPOptionsAreThoseOfTheConfiguration(t *testing.T) {
	cfg := &config.Config{}
	cfg.TCP.Keepalive, cfg.TCP.Time, cfg.TCP.Interval, cfg.TCP.Retries = true, time.Second, 2*time.Second, 3
	cfg.TCP.UserTimeout, cfg.TCP.CongestionControl = 4*time.Second, "reno"
	o := TCPOptions(cfg)
	if !o.Keepalive || o.Idle != time.Second || o.Interval != 2*time.Second || o.Probes != 3 || o.UserTimeout != 4*time.Second || o.Congestion != "reno" {
		t.Errorf("the options are %+v", o)
	}
}
