package loop_test

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"sync"
	"testing"

	"github.com/pgebb/pgebb/internal/loop"
)

// portions are the sizes in bytes that streams are read and written in.
var portions = []int{1, 7, 100, 2047, 2048, 2049, 5000, loop.BufferSize}

// moody is an echo that reads little, writes in portions, and pauses at random.
type moody struct {
	dice   *rand.Rand
	paused []*scripted
}

func (m *moody) readable(t *testing.T, s *scripted) {
	if s.Pending() > 0 {
		return
	}
	if m.dice.IntN(4) == 0 {
		m.paused = append(m.paused, s)
		return
	}
	b := s.Loop().Buffer()[:portions[m.dice.IntN(len(portions))]]
	n, more, err := s.Read(b)
	if err != nil {
		if !errors.Is(err, io.EOF) {
			t.Error(err)
		}
		s.Close()
		return
	}
	for b = b[:n]; len(b) > 0; {
		k := min(portions[m.dice.IntN(len(portions))], len(b))
		if err := s.Write(b[:k]); err != nil {
			t.Error(err)
		}
		b = b[k:]
	}
	if more {
		s.Resume()
	}
	m.goOn()
}

// goOn ends all pauses.
func (m *moody) goOn() {
	for _, p := range m.paused {
		p.Resume()
	}
	m.paused = m.paused[:0]
}

// converse sends random bytes to an echo and compares them with what comes back.
func converse(t *testing.T, with net.Conn, dice *rand.Rand) {
	sent := make([]byte, 300_000)
	for k := range sent {
		sent[k] = byte(dice.Uint32())
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		for rest := sent; len(rest) > 0; {
			k := min(portions[dice.IntN(len(portions)-1)], len(rest))
			if _, err := with.Write(rest[:k]); err != nil {
				t.Error(err)
				return
			}
			rest = rest[k:]
		}
		_ = with.(*net.TCPConn).CloseWrite()
	})
	if got, err := io.ReadAll(with); err != nil || !bytes.Equal(got, sent) {
		t.Errorf("%d bytes came back, %v, which are not what was sent", len(got), err)
	}
	wg.Wait()
}

func TestStreamsComeThroughWhateverHandlersDo(t *testing.T) {
	for _, single := range []bool{false, true} {
		seed := rand.Uint64()
		t.Logf("seed %d", seed)
		l := newLoop(t)
		if single {
			l.Call(l.MakeSingleCalls)
		}
		m := &moody{dice: rand.New(rand.NewPCG(seed, 0))} // the loop's
		ours, theirs := newScripted(t, l, 12, func(s *scripted) { m.readable(t, s) })
		l.Call(func() { // that what is sent comes later does not synchronize
			for _, s := range ours {
				s.drained = (*scripted).Resume
			}
		})
		stop := make(chan struct{})
		var resumer, streams sync.WaitGroup
		resumer.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
					l.Call(m.goOn)
				}
			}
		})
		for i, there := range theirs {
			streams.Go(func() { converse(t, there, rand.New(rand.NewPCG(seed, uint64(i)+1))) })
		}
		streams.Wait()
		close(stop)
		resumer.Wait()
		if l.Pending() != 0 {
			t.Errorf("%d bytes are still counted", l.Pending())
		}
	}
}
