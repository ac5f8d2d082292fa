package frontend

import (
	"context"
	"fmt"
	"io"
	"net"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/pgebb/pgebb/config"
	"github.com/pgebb/pgebb/internal/loop"
	"github.com/pgebb/pgebb/internal/scram"
	"github.com/pgebb/pgebb/internal/testlog"
	"github.com/pgebb/pgebb/internal/wire"
)

// listening is a frontend that listens, where logins are by auth_type.
func listening(t *testing.T, authType string, log io.Writer) *Frontend {
	t.Helper()
	f := newFrontend(t, "", log)
	cfg := *f.cfg.Load()
	cfg.General.AuthType = map[string]config.AuthType{"trust": config.AuthTrust, "md5": config.AuthMD5, "scram": config.AuthScram, "plain": config.AuthPlain}[authType]
	f.Update(&cfg)
	f.auth.working.Wait()
	if err := f.Listen(); err != nil {
		t.Fatal(err)
	}
	return f
}

// arrive starts a login at a frontend.
func (f *Frontend) arrive(t *testing.T, password string) *prompt {
	t.Helper()
	conn := dial(t, f.address(0))
	if _, err := conn.Write(packet(wire.Version30, "user", "u", "database", "d")); err != nil {
		t.Fatal(err)
	}
	return &prompt{Conn: conn, user: "u", password: password}
}

// TestALoginThatWaitsDoesNotHoldUpItsLoop: whoever is wrong waits to be told so, and meanwhile others
// of the same loop log in.
func TestALoginThatWaitsDoesNotHoldUpItsLoop(t *testing.T) {
	for _, authType := range []string{"md5", "scram", "plain"} {
		t.Run(authType, func(t *testing.T) { loginsThatWait(t, authType) })
	}
}

func loginsThatWait(t *testing.T, authType string) {
	f := listening(t, authType, io.Discard)
	resting, goOn := make(chan struct{}), make(chan struct{})
	f.loops.Loops()[0].Call(func() {
		f.failures.rested = func(context.Context, time.Duration) error {
			resting <- struct{}{}
			<-goOn
			return nil
		}
	})
	told := make(chan string, 2)
	for range 2 {
		wrong := f.arrive(t, "wrong")
		var heard strings.Builder
		wrong.Conn = &overheard{wrong.Conn, &heard}
		go func() {
			_ = wrong.answer()
			told <- heard.String()
		}()
		<-resting
	}
	right := f.arrive(t, "p")
	if err := right.answer(); err != nil {
		t.Errorf("%s: a right password meanwhile: %v", authType, err)
	}
	f.loops.Loops()[0].Call(func() {}) // the login has ended then, if it was on the loop
	if n := f.arriving.Load(); authType != "plain" && n != 2 {
		t.Errorf("%s: %d log in, want 2", authType, n)
	}
	close(goOn)
	for range 2 {
		if heard := <-told; !strings.Contains(heard, "28P01") {
			t.Errorf("%s: a wrong password is answered with %q", authType, heard)
		}
	}
}

// overheard is a connection that notes what is read from it.
type overheard struct {
	net.Conn
	heard *strings.Builder
}

func (o *overheard) Read(p []byte) (int, error) {
	n, err := o.Conn.Read(p)
	o.heard.Write(p[:n])
	return n, err
}

// TestLoginsThatWaitOnlyForTheirClientsStayOnTheirLoops, and the others leave it.
func TestLoginsThatWaitOnlyForTheirClientsStayOnTheirLoops(t *testing.T) {
	for authType, stays := range map[string]bool{"md5": true, "scram": true, "plain": false} {
		t.Run(authType, func(t *testing.T) {
			f := listening(t, authType, io.Discard)
			p := f.arrive(t, "p")
			if _, _, err := p.next(); err != nil {
				t.Fatal(err)
			}
			if onLoop := f.arriving.Load() == 1; onLoop != stays {
				t.Errorf("%s: the login is on its loop: %t", authType, onLoop)
			}
			if n := f.LoggingIn(); n != 1 {
				t.Errorf("%s: %d log in", authType, n)
			}
		})
	}
}

// TestLoginsEndWithPgebb at whatever point they are. That nothing is left of them is checked
// as for all tests of this package.
func TestLoginsEndWithPgebb(t *testing.T) {
	f := listening(t, "scram", io.Discard)
	f.loops.Loops()[0].Call(func() {
		f.failures.rested = func(ctx context.Context, _ time.Duration) error { <-ctx.Done(); return ctx.Err() }
	})
	silent, partly := dial(t, f.address(0)), dial(t, f.address(0))
	if _, err := partly.Write([]byte{0, 0}); err != nil {
		t.Fatal(err)
	}
	asked, failing := f.arrive(t, "p"), f.arrive(t, "wrong")
	if _, _, err := asked.next(); err != nil {
		t.Fatal(err)
	}
	failed := make(chan error)
	go func() { failed <- failing.answerAs(scram.NewClient("wrong")) }()
	for f.failures.places("u") == 0 {
		f.loops.Loops()[0].Call(func() {})
	}
	f.Close()
	<-failed
	for i, conn := range []net.Conn{silent, partly, asked.Conn, failing.Conn} {
		if _, err := io.Copy(io.Discard, conn); err != nil && !strings.Contains(err.Error(), "reset") {
			t.Errorf("connection %d: %v", i, err)
		}
	}
	if n := f.LoggingIn(); n != 0 {
		t.Errorf("%d log in", n)
	}
}

// places is how many places of a user's guesses are taken.
func (f *failures) places(user string) (n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for g, s := range f.slots {
		if g.user == user {
			n += len(s.free)
		}
	}
	return n
}

// TestSilentLoginsTimeOut at whatever point they are.
func TestSilentLoginsTimeOut(t *testing.T) {
	var log testlog.Buffer
	f := listening(t, "scram", &log)
	cfg := *f.cfg.Load()
	cfg.General.ClientLoginTimeout = 50 * time.Millisecond
	f.Update(&cfg)
	f.auth.working.Wait()
	silent, partly := dial(t, f.address(0)), dial(t, f.address(0))
	if _, err := partly.Write([]byte{0, 0}); err != nil {
		t.Fatal(err)
	}
	asked := f.arrive(t, "p")
	if _, _, err := asked.next(); err != nil {
		t.Fatal(err)
	}
	for i, conn := range []net.Conn{silent, partly, asked.Conn} {
		if _, err := io.Copy(io.Discard, conn); err != nil && !strings.Contains(err.Error(), "reset") {
			t.Errorf("connection %d: %v", i, err)
		}
	}
	if n := strings.Count(log.String(), "i/o timeout"); n < 2 {
		t.Errorf("the log has %d of them: %s", n, log.String())
	}
}

// TestALoginThatWaitsTooLongEnds, also if what it waits for comes a moment later.
func TestALoginThatWaitsTooLongEnds(t *testing.T) {
	f := listening(t, "md5", io.Discard)
	cfg := *f.cfg.Load()
	cfg.General.ClientLoginTimeout = 200 * time.Millisecond
	f.Update(&cfg)
	var leaves []func()
	for range maxGuesses {
		leaves = append(leaves, f.failures.tryEnter(guesser{"127.0.0.1", "u"}))
	}
	p := f.arrive(t, "p")
	err := p.answer()
	if err == nil {
		t.Fatal("it has succeeded")
	}
	if n := f.LoggingIn(); n != 0 {
		t.Errorf("%d log in", n)
	}
	for _, leave := range leaves {
		leave()
	}
	for f.failures.places("u") > 0 {
		f.loops.Loops()[0].Call(func() {})
	}
}

// TestAClientThatDoesNotReadYetIsAClientAllTheSame: what it was told before its login has ended, and
// has not taken, is pending for it then.
func TestAClientThatDoesNotReadYetIsAClientAllTheSame(t *testing.T) {
	f := listening(t, "trust", io.Discard)
	must(t, unix.SetsockoptInt(listeningSocket(t, f.address(0)), unix.SOL_SOCKET, unix.SO_SNDBUF, 4<<10))
	d := net.Dialer{Control: func(_, _ string, c syscall.RawConn) error {
		return c.Control(func(fd uintptr) { _ = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_RCVBUF, 4<<10) })
	}}
	conn, err := d.Dial("tcp", f.address(0).String())
	must(t, err)
	defer conn.Close()
	must(t, conn.SetDeadline(time.Now().Add(20*time.Second)))
	pairs := []string{"user", "u", "database", "d"}
	for i := range 1500 { // each is told to be unknown
		pairs = append(pairs, fmt.Sprintf("_pq_.an_option_of_a_newer_version_%d", i), "")
	}
	_, err = conn.Write(packet(wire.Version30, pairs...))
	must(t, err)
	for f.Count() == 0 || f.LoggingIn() > 0 { // it has read nothing so far
		f.loops.Loops()[0].Call(func() {})
	}
	must(t, conn.(*net.TCPConn).CloseWrite())
	got, err := io.ReadAll(conn)
	if ready := wire.AppendReadyForQuery(nil, wire.Idle); err != nil || len(got) < 50_000 || !strings.HasSuffix(string(got), string(ready)) {
		t.Errorf("it gets %d bytes, %v", len(got), err)
	}
}

// TestALoginReadsLittleOfWhatIsBehindIt: the rest is left to the system until it is its turn.
func TestALoginReadsLittleOfWhatIsBehindIt(t *testing.T) {
	f := listening(t, "md5", io.Discard)
	resting, goOn := make(chan struct{}), make(chan struct{})
	f.loops.Loops()[0].Call(func() {
		f.failures.rested = func(context.Context, time.Duration) error {
			resting <- struct{}{}
			<-goOn
			return nil
		}
	})
	p := f.arrive(t, "wrong")
	if _, _, err := p.next(); err != nil {
		t.Fatal(err)
	}
	long := make([]byte, 60_000)
	if _, err := p.Write(append(wire.AppendRaw(nil, wire.Password, []byte("md5wrong\x00")), long...)); err != nil {
		t.Fatal(err)
	}
	<-resting
	l := f.loops.Loops()[0]
	l.Call(func() {
		l.Each(func(h loop.Handler) {
			if a, ok := h.(*arrival); ok && cap(a.in) > loginPiece {
				t.Errorf("%d bytes are held", cap(a.in))
			}
		})
	})
	if n := l.Pending(); n > 4<<10 {
		t.Errorf("%d bytes are pending", n)
	}
	close(goOn)
}

// TestWhatComesBehindAStartupIsForTheClient: a client that is trusted need not wait for anything.
func TestWhatComesBehindAStartupIsForTheClient(t *testing.T) {
	f := listening(t, "trust", io.Discard)
	all := wire.AppendEmpty(wire.AppendEmpty(packet(wire.Version30, "user", "u", "database", "d"), wire.Sync), wire.Terminate)
	for cut := range all {
		conn := dial(t, f.address(0))
		for _, p := range [][]byte{all[:cut], all[cut:]} {
			if _, err := conn.Write(p); err != nil {
				t.Fatal(err)
			}
			f.loops.Loops()[0].Call(func() {})
		}
		got, err := io.ReadAll(conn)
		ready := string(wire.AppendReadyForQuery(nil, wire.Idle))
		if n := strings.Count(string(got), ready); n != 2 || err != nil {
			t.Fatalf("cut at %d: %d ReadyForQuery, %v: %q", cut, n, err, got)
		}
	}
}

// TestAClientOnALoopIsWhereItSaysItIs.
func TestAClientOnALoopIsWhereItSaysItIs(t *testing.T) {
	var log testlog.Buffer
	f := listening(t, "trust", &log)
	cfg := *f.cfg.Load()
	cfg.General.LogConnections = true
	f.Update(&cfg)
	conn := logInAt(t, f.address(0))
	if want := fmt.Sprintf("client=%s", conn.LocalAddr()); !strings.Contains(log.String(), want) {
		t.Errorf("the log lacks %s: %s", want, log.String())
	}
}
