package loop_test

import (
	"io"
	"net"
	"testing"

	"github.com/pgebb/pgebb/internal/loop"
)

// scripted is a connection whose handlers are a test's.
type scripted struct {
	loop.Conn
	readable func(*scripted)
	drained  func(*scripted)
	broken   chan error
	got      []byte
}

func (s *scripted) Readable() { s.readable(s) }
func (s *scripted) Drained() {
	if s.drained != nil {
		s.drained(s)
	}
}
func (s *scripted) Broken(err error) { s.Close(); s.broken <- err }

// newScripted puts n connections on a loop that do the same.
func newScripted(t *testing.T, l *loop.Loop, n int, readable func(*scripted)) (ours []*scripted, theirs []net.Conn) {
	t.Helper()
	for range n {
		here, there := socketPair(t, "tcp")
		_ = here.(*net.TCPConn).SetWriteBuffer(4 << 10) // so that the peer soon does not take everything
		s := &scripted{readable: readable, broken: make(chan error, 1)}
		if err := s.Init(here, s); err != nil {
			t.Fatal(err)
		}
		l.Call(func() {
			if err := l.Add(&s.Conn); err != nil {
				t.Error(err)
			}
		})
		ours, theirs = append(ours, s), append(theirs, there)
	}
	return ours, theirs
}

// inOneRound has the loop get everything that do causes in one round of events. It returns
// when that has been dealt with.
func inOneRound(t *testing.T, l *loop.Loop, do func()) {
	t.Helper()
	l.Call(do)
	l.Call(func() {})
	l.Call(func() {})
}

func send(t *testing.T, to net.Conn, text string) {
	t.Helper()
	if _, err := to.Write([]byte(text)); err != nil {
		t.Error(err)
	}
}

func expect(t *testing.T, from net.Conn, want string) {
	t.Helper()
	got := make([]byte, len(want))
	if n, err := io.ReadFull(from, got); err != nil || string(got) != want {
		t.Errorf("got %q, %v instead of %q", got[:n], err, want)
	}
}

// readAll is a handler that keeps all that it reads.
func readAll(s *scripted) {
	b := s.Loop().Buffer()
	n, more, err := s.Read(b)
	if err != nil {
		s.Close()
		s.broken <- err
		return
	}
	s.got = append(s.got, b[:n]...)
	if more {
		s.Resume()
	}
}
