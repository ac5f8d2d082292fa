package loop_test

import (
	"bytes"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/pgebb/pgebb/internal/loop"
)

// echo writes back what it reads, and stops reading while the peer does not take
// it, as a relay does.
type echo struct {
	loop.Conn
	loop.Handler
	reads  int
	closed chan error
}

func (e *echo) Readable() {
	if e.Pending() > 0 {
		return
	}
	b := e.Loop().Buffer()
	n, more, err := e.Read(b)
	if err != nil {
		e.Close()
		e.closed <- err
		return
	}
	e.reads++
	if err := e.Write(b[:n]); err != nil {
		e.Broken(err)
		return
	}
	if more {
		e.Resume()
	}
}

func (e *echo) Drained()         { e.Resume() }
func (e *echo) Broken(err error) { e.Close(); e.closed <- err }

// socketPair is a connected pair of sockets of the given network.
func socketPair(t *testing.T, network string) (ours, theirs net.Conn) {
	t.Helper()
	address := "127.0.0.1:0"
	if network == "unix" {
		address = filepath.Join(t.TempDir(), "s")
	}
	ln, err := net.Listen(network, address)
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	theirs, err = net.Dial(network, ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	ours, err = ln.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { theirs.Close() })
	return ours, theirs
}

func newLoop(t *testing.T) *loop.Loop {
	t.Helper()
	l, err := loop.New(0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.Stop)
	return l
}

func newEcho(t *testing.T, l *loop.Loop, network string) (*echo, net.Conn) {
	t.Helper()
	ours, theirs := socketPair(t, network)
	e := &echo{closed: make(chan error, 1)}
	if err := e.Init(ours, e); err != nil {
		t.Fatal(err)
	}
	l.Call(func() {
		if err := l.Add(&e.Conn); err != nil {
			t.Error(err)
		}
	})
	return e, theirs
}

func TestAConnectionGetsWhatWasSentBeforeItWasAdded(t *testing.T) {
	for _, network := range []string{"tcp", "unix"} {
		ours, theirs := socketPair(t, network)
		if _, err := theirs.Write([]byte("early")); err != nil {
			t.Fatal(err)
		}
		l := newLoop(t)
		e := &echo{closed: make(chan error, 1)}
		if err := e.Init(ours, e); err != nil {
			t.Fatal(err)
		}
		l.Call(func() { _ = l.Add(&e.Conn) })
		got := make([]byte, 5)
		if _, err := io.ReadFull(theirs, got); err != nil || string(got) != "early" {
			t.Errorf("%s: got %q, %v", network, got, err)
		}
	}
}

// TestASlowReaderGetsEverythingInOrder sends more than all socket buffers hold
// before it reads anything.
func TestASlowReaderGetsEverythingInOrder(t *testing.T) {
	for _, network := range []string{"tcp", "unix"} {
		l := newLoop(t)
		_, theirs := newEcho(t, l, network)
		sent := bytes.Repeat([]byte("0123456789abcdef"), 1<<20)
		var wg sync.WaitGroup
		wg.Go(func() {
			if _, err := theirs.Write(sent); err != nil {
				t.Error(err)
			}
		})
		for l.Pending() == 0 {
			l.Call(func() {})
		}
		got := make([]byte, len(sent))
		if _, err := io.ReadFull(theirs, got); err != nil {
			t.Fatal(err)
		}
		wg.Wait()
		if !bytes.Equal(got, sent) {
			t.Errorf("%s: what came back is not what was sent", network)
		}
		l.Call(func() {})
		if l.Pending() != 0 {
			t.Errorf("%s: %d bytes are still pending", network, l.Pending())
		}
	}
}

func TestPendingBytesAreBoundedByOneBuffer(t *testing.T) {
	l := newLoop(t)
	_, theirs := newEcho(t, l, "tcp")
	go func() { _, _ = theirs.Write(make([]byte, 32<<20)) }()
	for l.Pending() == 0 {
		l.Call(func() {})
	}
	for range 100 {
		l.Call(func() {})
		if p := l.Pending(); p > loop.BufferSize {
			t.Fatalf("%d bytes are pending for a reader who reads nothing", p)
		}
	}
}

func TestEndOfStreamAndResetAreReported(t *testing.T) {
	l := newLoop(t)
	e, theirs := newEcho(t, l, "tcp")
	theirs.Close()
	if err := <-e.closed; !errors.Is(err, io.EOF) {
		t.Errorf("an orderly end is reported as %v", err)
	}
	e, theirs = newEcho(t, l, "tcp")
	_ = theirs.(*net.TCPConn).SetLinger(0)
	theirs.Close()
	if err := <-e.closed; err == nil || errors.Is(err, io.EOF) {
		t.Errorf("a reset is reported as %v", err)
	}
}

func TestBytesBeforeTheEndOfTheStreamAreReadFirst(t *testing.T) {
	ours, theirs := socketPair(t, "tcp")
	if _, err := theirs.Write([]byte("last words")); err != nil {
		t.Fatal(err)
	}
	_ = theirs.(*net.TCPConn).CloseWrite()
	l := newLoop(t)
	e := &echo{closed: make(chan error, 1)}
	_ = e.Init(ours, e)
	l.Call(func() { _ = l.Add(&e.Conn) })
	got, err := io.ReadAll(theirs)
	if err != nil || string(got) != "last words" {
		t.Errorf("got %q, %v", got, err)
	}
	<-e.closed
}

func TestAConnectionMovesToAnotherLoop(t *testing.T) {
	from, to := newLoop(t), newLoop(t)
	e, theirs := newEcho(t, from, "tcp")
	say := func(s string) {
		t.Helper()
		if _, err := theirs.Write([]byte(s)); err != nil {
			t.Fatal(err)
		}
		got := make([]byte, len(s))
		if _, err := io.ReadFull(theirs, got); err != nil || string(got) != s {
			t.Fatalf("got %q, %v", got, err)
		}
	}
	for range 50 {
		say("before")
		moved := make(chan error)
		from.Post(func() {
			if err := from.Remove(&e.Conn); err != nil {
				moved <- err
				return
			}
			to.Post(func() { moved <- to.Add(&e.Conn) })
		})
		if err := <-moved; err != nil {
			t.Fatal(err)
		}
		if e.Loop() != to {
			t.Fatal("the connection does not know its loop")
		}
		say("after")
		from, to = to, from
	}
}

func TestOneConnectionDoesNotStarveAnother(t *testing.T) {
	l := newLoop(t)
	_, flood := newEcho(t, l, "unix")
	_, quiet := newEcho(t, l, "unix")
	stop := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		b := make([]byte, 1<<20)
		for {
			select {
			case <-stop:
				return
			default:
			}
			if _, err := flood.Write(b); err != nil {
				return
			}
		}
	})
	wg.Go(func() { _, _ = io.Copy(io.Discard, flood) })
	for range 200 {
		if _, err := quiet.Write([]byte("x")); err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadFull(quiet, make([]byte, 1)); err != nil {
			t.Fatal(err)
		}
	}
	close(stop)
	flood.Close()
	wg.Wait()
}

func TestPostedFunctionsRunInOrder(t *testing.T) {
	l := newLoop(t)
	var got []int
	for i := range 1000 {
		l.Post(func() { got = append(got, i) })
	}
	l.Call(func() {})
	for i, n := range got {
		if i != n {
			t.Fatalf("function %d ran as number %d", n, i)
		}
	}
	if len(got) != 1000 {
		t.Errorf("%d functions ran", len(got))
	}
}

func TestCallOnAStoppedLoopReturns(t *testing.T) {
	l, err := loop.New(0)
	if err != nil {
		t.Fatal(err)
	}
	l.Stop()
	if l.Call(func() {}) {
		t.Error("a function ran on a stopped loop")
	}
}

func TestStopClosesConnections(t *testing.T) {
	l, err := loop.New(0)
	if err != nil {
		t.Fatal(err)
	}
	_, theirs := newEcho(t, l, "tcp")
	l.Stop()
	if _, err := theirs.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
		t.Errorf("the peer reads %v", err)
	}
}

func TestTicksFollowTheShortestPeriod(t *testing.T) {
	l := newLoop(t)
	ticks := make(chan time.Duration, 100)
	l.Call(func() {
		l.OnTick(func(now time.Duration) {
			select {
			case ticks <- now:
			default:
			}
		})
	})
	l.SetTick(time.Millisecond)
	first := <-ticks
	for range 3 {
		if next := <-ticks; next <= first {
			t.Fatalf("a tick at %v follows one at %v", next, first)
		}
	}
}

func TestNoDescriptorIsLeft(t *testing.T) {
	count := func() int {
		entries, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			t.Fatal(err)
		}
		return len(entries)
	}
	before := count()
	for range 20 {
		l, err := loop.New(0)
		if err != nil {
			t.Fatal(err)
		}
		_, theirs := newEcho(t, l, "tcp")
		l.Stop()
		theirs.Close()
	}
	if after := count(); after > before {
		t.Errorf("%d descriptors before, %d after", before, after)
	}
}
