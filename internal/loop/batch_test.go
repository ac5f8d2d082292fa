package loop_test

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/pgebb/pgebb/internal/loop"
)

// noteSingleCalls says that a test about calls that are made together runs where they are made one
// by one, and what it checks holds then, too.
func noteSingleCalls(t *testing.T) {
	t.Helper()
	if err := loop.Batching(); err != nil {
		t.Logf("without io_uring this shows how it is without: %v", err)
	}
}

func TestManyConnectionsAreReadAndWrittenTogether(t *testing.T) {
	l := newLoop(t)
	const n = 100 // more than fit into one call
	_, theirs := newScripted(t, l, n, func(s *scripted) {
		b := s.Loop().Buffer()
		k, _, err := s.Read(b)
		if err != nil {
			s.Close() // the test is over
			return
		}
		if err := s.Write(b[:k]); err != nil {
			t.Error(err)
		}
	})
	inOneRound(t, l, func() {
		for i, there := range theirs {
			send(t, there, fmt.Sprintf("hello %d", i))
		}
	})
	for i, there := range theirs {
		expect(t, there, fmt.Sprintf("hello %d", i))
	}
	if loop.Batching() == nil && l.Batched() < 2*n {
		t.Errorf("%d of %d calls were made together with others", l.Batched(), 2*n)
	}
}

func TestLoopsThatMakeSingleCallsBatchNothing(t *testing.T) {
	l := newLoop(t)
	l.Call(l.MakeSingleCalls)
	ours, theirs := newScripted(t, l, 3, readAll)
	inOneRound(t, l, func() {
		for _, there := range theirs {
			send(t, there, "x")
		}
	})
	l.Call(func() {
		for _, s := range ours {
			if string(s.got) != "x" {
				t.Errorf("got %q", s.got)
			}
		}
	})
	if l.Batched() != 0 {
		t.Errorf("%d calls were made together", l.Batched())
	}
}

// move takes connections from one loop to another.
func move(t *testing.T, ours []*scripted, from, to *loop.Loop) {
	t.Helper()
	from.Call(func() {
		for _, s := range ours {
			if err := from.Remove(&s.Conn); err != nil {
				t.Error(err)
			}
		}
	})
	to.Call(func() {
		for _, s := range ours {
			if err := to.Add(&s.Conn); err != nil {
				t.Error(err)
			}
		}
	})
}

// TestWhatWasReadAheadWaitsForItsHandler has handlers that do not read, or only a part.
func TestWhatWasReadAheadWaitsForItsHandler(t *testing.T) {
	noteSingleCalls(t)
	for _, taken := range []int{0, 1, 5} {
		for _, moves := range []bool{false, true} {
			from, to := newLoop(t), newLoop(t)
			open := false
			ours, theirs := newScripted(t, from, 3, func(s *scripted) {
				if open {
					readAll(s)
					return
				}
				if taken == 0 || len(s.got) > 0 {
					return
				}
				n, _, err := s.Read(s.Loop().Buffer()[:taken])
				if err != nil {
					t.Error(err)
				}
				s.got = append(s.got, s.Loop().Buffer()[:n]...)
			})
			inOneRound(t, from, func() {
				for _, there := range theirs {
					send(t, there, "first ")
				}
			})
			if loop.Batching() == nil && from.Pending() == 0 {
				t.Error("what was read ahead is not counted")
			}
			inOneRound(t, from, func() {
				for _, there := range theirs {
					send(t, there, "second ")
				}
			})
			l := from
			if moves {
				l = to
				move(t, ours, from, to)
			}
			l.Call(func() {
				open = true
				for _, s := range ours {
					s.Resume()
				}
			})
			for range 4 {
				l.Call(func() {})
			}
			l.Call(func() {
				for _, s := range ours {
					if string(s.got) != "first second " {
						t.Errorf("%d bytes taken at first, moves: %t: got %q", taken, moves, s.got)
					}
				}
			})
			if from.Pending() != 0 || to.Pending() != 0 {
				t.Errorf("%d and %d bytes are still counted", from.Pending(), to.Pending())
			}
		}
	}
}

// TestAConnectionThatLeavesInItsRoundTakesAlongWhatWasReadAhead: its handler lets it go before it has
// read anything.
func TestAConnectionThatLeavesInItsRoundTakesAlongWhatWasReadAhead(t *testing.T) {
	noteSingleCalls(t)
	from, to := newLoop(t), newLoop(t)
	left := false
	ours, theirs := newScripted(t, from, 3, func(s *scripted) {
		if left {
			readAll(s)
			return
		}
		if err := from.Remove(&s.Conn); err != nil {
			t.Error(err)
		}
	})
	inOneRound(t, from, func() {
		for _, there := range theirs {
			send(t, there, "first")
		}
	})
	to.Call(func() {
		left = true
		for _, s := range ours {
			if err := to.Add(&s.Conn); err != nil {
				t.Error(err)
			}
		}
	})
	to.Call(func() {})
	to.Call(func() {
		for _, s := range ours {
			if string(s.got) != "first" {
				t.Errorf("got %q", s.got)
			}
		}
	})
	if from.Pending() != 0 || to.Pending() != 0 {
		t.Errorf("%d and %d bytes are still counted", from.Pending(), to.Pending())
	}
}

func TestAClosedConnectionLeavesNothingThatWasReadAhead(t *testing.T) {
	l := newLoop(t)
	ours, theirs := newScripted(t, l, 3, func(*scripted) {})
	inOneRound(t, l, func() {
		for _, there := range theirs {
			send(t, there, "nobody reads this")
		}
	})
	l.Call(func() {
		for _, s := range ours {
			s.Close()
		}
	})
	if l.Pending() != 0 {
		t.Errorf("%d bytes are still counted", l.Pending())
	}
}

// TestAConnectionClosedByAnothersHandlerIsNotServed closes connections that were read, or are to be
// written, in the same round.
func TestAConnectionClosedByAnothersHandlerIsNotServed(t *testing.T) {
	noteSingleCalls(t)
	l := newLoop(t)
	var ours []*scripted
	served := 0
	ours, theirs := newScripted(t, l, 5, func(s *scripted) {
		served++
		_ = s.Write([]byte("mine"))
		for _, other := range ours {
			if other != s {
				other.Close()
			}
		}
	})
	inOneRound(t, l, func() {
		for _, there := range theirs {
			send(t, there, "x")
		}
	})
	if served != 1 {
		t.Errorf("%d connections were served", served)
	}
	l.Call(func() {
		for _, s := range ours {
			s.Close()
		}
	})
	texts := map[string]int{}
	for _, there := range theirs {
		b, _ := io.ReadAll(there)
		texts[string(b)]++
	}
	if texts["mine"] != 1 || texts[""] != 4 {
		t.Errorf("the peers got %v", texts)
	}
}

func TestWhatWasWrittenComesBeforeTheEnd(t *testing.T) {
	noteSingleCalls(t)
	for name, end := range map[string]func(*scripted){
		"Close":    func(s *scripted) { s.Close() },
		"EndWrite": func(s *scripted) { _ = s.EndWrite() },
	} {
		l := newLoop(t)
		_, theirs := newScripted(t, l, 3, func(s *scripted) {
			if n, _, err := s.Read(s.Loop().Buffer()); n == 0 || err != nil {
				s.Close()
				return
			}
			_ = s.Write([]byte("last "))
			_ = s.Write([]byte("words"))
			end(s)
		})
		inOneRound(t, l, func() {
			for _, there := range theirs {
				send(t, there, "x")
			}
		})
		for _, there := range theirs {
			if b, err := io.ReadAll(there); err != nil || string(b) != "last words" {
				t.Errorf("%s: got %q, %v", name, b, err)
			}
		}
	}
}

func TestAskingForWhatIsPendingSendsWhatWasPutOff(t *testing.T) {
	l := newLoop(t)
	var theirs []net.Conn
	_, theirs = newScripted(t, l, 2, func(s *scripted) {
		if n, _, err := s.Read(s.Loop().Buffer()); n == 0 || err != nil {
			s.Close()
			return
		}
		if err := s.Write([]byte("now")); err != nil || s.Pending() != 0 {
			t.Errorf("%d bytes are pending, %v", s.Pending(), err)
		}
		_, port := s.RemoteAddr()
		for _, there := range theirs {
			if there.LocalAddr().(*net.TCPAddr).Port == port {
				_ = there.SetReadDeadline(time.Now().Add(10 * time.Second))
				expect(t, there, "now")
			}
		}
	})
	inOneRound(t, l, func() {
		for _, there := range theirs {
			send(t, there, "x")
		}
	})
}

// TestPendingKnowsWhatWasPutOff writes more than a socket takes, in pieces that are put off.
func TestPendingKnowsWhatWasPutOff(t *testing.T) {
	noteSingleCalls(t)
	l := newLoop(t)
	piece := bytes.Repeat([]byte("0123456789abcdef"), 256)
	written := 0
	ours, theirs := newScripted(t, l, 2, func(s *scripted) {
		if _, _, err := s.Read(s.Loop().Buffer()); err != nil {
			s.Close()
			return
		}
		for s.Pending() == 0 {
			if err := s.Write(piece); err != nil {
				t.Error(err)
				return
			}
			written += len(piece)
		}
		// Soon the system may take more, and it is pending no longer.
		if s.Loop().Pending() == 0 {
			t.Error("nothing is counted as pending")
		}
	})
	done := make(chan struct{}, len(ours))
	for _, s := range ours {
		s.drained = func(*scripted) { done <- struct{}{} }
	}
	inOneRound(t, l, func() {
		for _, there := range theirs {
			send(t, there, "x")
		}
	})
	var wg sync.WaitGroup
	read := make([]int, len(theirs))
	for i, there := range theirs {
		wg.Go(func() {
			b := make([]byte, len(piece))
			for {
				if _, err := io.ReadFull(there, b); err != nil {
					return
				}
				if !bytes.Equal(b, piece) {
					t.Error("what came is not what was sent")
					return
				}
				read[i] += len(b)
			}
		})
	}
	for range ours {
		<-done
	}
	l.Call(func() {
		for _, s := range ours {
			s.Close()
		}
	})
	wg.Wait()
	if read[0]+read[1] != written {
		t.Errorf("%d and %d of %d bytes came", read[0], read[1], written)
	}
}

// TestMoreThanIsPutOffStaysInOrder writes more to a connection than is put off in a round, and more
// than its socket takes.
func TestMoreThanIsPutOffStaysInOrder(t *testing.T) {
	noteSingleCalls(t)
	l := newLoop(t)
	var pieces [][]byte
	for i := range 100 {
		pieces = append(pieces, bytes.Repeat([]byte{byte(i)}, 2<<10))
	}
	_, theirs := newScripted(t, l, 2, func(s *scripted) {
		if n, _, err := s.Read(s.Loop().Buffer()); n == 0 || err != nil {
			s.Close()
			return
		}
		for _, p := range pieces {
			if err := s.Write(p); err != nil {
				t.Error(err)
			}
		}
	})
	inOneRound(t, l, func() {
		for _, there := range theirs {
			send(t, there, "x")
		}
	})
	for _, there := range theirs {
		for i, p := range pieces {
			got := make([]byte, len(p))
			if _, err := io.ReadFull(there, got); err != nil || !bytes.Equal(got, p) {
				t.Fatalf("piece %d is not what was sent, %v", i, err)
			}
		}
	}
}

func TestAWriteThatWasPutOffAndFailsIsReported(t *testing.T) {
	noteSingleCalls(t)
	l := newLoop(t)
	var theirs []net.Conn
	_, theirs = newScripted(t, l, 3, func(s *scripted) {
		n, _, err := s.Read(s.Loop().Buffer())
		if n == 0 || err != nil {
			return // the end of the stream, which is not what this is about
		}
		// The peer goes when what it said has been read, and before it gets an answer.
		for _, there := range theirs {
			_ = there.(*net.TCPConn).SetLinger(0)
			there.Close()
		}
		if err := s.Write([]byte("answer")); err != nil {
			s.Broken(err)
		}
	})
	inOneRound(t, l, func() {
		for _, there := range theirs {
			send(t, there, "x")
		}
	})
	left := 0
	l.Call(func() { l.Each(func(loop.Handler) { left++ }) })
	if left != 0 {
		t.Errorf("%d of 3 connections to peers that are gone were left", left)
	}
}
