package loop_test

import (
	"bytes"
	"errors"
	"io"
	"net"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/pgebb/pgebb/internal/loop"
)

// TestAConnectionThatBecomesAnotherLosesNothing, whatever of its input was read and given back, and
// whatever of its output is pending.
func TestAConnectionThatBecomesAnotherLosesNothing(t *testing.T) {
	noteSingleCalls(t)
	const input = "first second third "
	for _, pending := range []int{0, 10, 1 << 20} {
		for _, taken := range []int{0, 1, 6, 13} {
			l := newLoop(t)
			var others []*scripted
			full := make(chan struct{}, 2)
			_, theirs := newScripted(t, l, 2, func(s *scripted) {
				back := []byte(readUpTo(t, s, taken))
				if err := s.Write(bytes.Repeat([]byte("x"), pending)); err != nil {
					t.Error(err)
				}
				other := &scripted{readable: func(s *scripted) {
					readAll(s)
					if len(s.got) == len(input) {
						full <- struct{}{}
					}
				}, broken: make(chan error, 1)}
				others = append(others, other)
				l.Become(&s.Conn, &other.Conn, other)
				l.Unread(&other.Conn, back)
				if s.Loop() != nil || !s.Closed() || other.Loop() != l {
					t.Error("both are on the loop, or none")
				}
				s.Close() // is that of nothing
			})
			inOneRound(t, l, func() {
				for _, there := range theirs {
					send(t, there, "first ")
					send(t, there, "second ")
				}
			})
			for _, there := range theirs {
				send(t, there, "third ")
			}
			for _, there := range theirs {
				_ = there.SetReadDeadline(time.Now().Add(10 * time.Second))
				if n, err := io.ReadFull(there, make([]byte, pending)); err != nil {
					t.Fatalf("%d of %d bytes arrive: %v", n, pending, err)
				}
			}
			<-full
			<-full
			l.Call(func() {
				for _, s := range others {
					if string(s.got) != input {
						t.Errorf("%d bytes given back: got %q", taken, s.got)
					}
				}
			})
			if n := l.Pending(); n != 0 {
				t.Errorf("%d bytes are still counted", n)
			}
		}
	}
}

// readUpTo reads at most n bytes.
func readUpTo(t *testing.T, s *scripted, n int) string {
	t.Helper()
	if n == 0 {
		return ""
	}
	n, _, err := s.Read(s.Loop().Buffer()[:n])
	if err != nil {
		t.Error(err)
	}
	return string(s.Loop().Buffer()[:n])
}

// peerOf is the address of the peer.
func peerOf(c *loop.Conn) net.Addr {
	host, port := c.RemoteAddr()
	return &net.TCPAddr{IP: net.ParseIP(host), Port: port}
}

// TestAReleasedConnectionTakesAlongWhatWasNotRead, and is no longer the loop's.
func TestAReleasedConnectionTakesAlongWhatWasNotRead(t *testing.T) {
	noteSingleCalls(t)
	for taken := 0; taken <= len("first "); taken++ {
		l := newLoop(t)
		released := make(chan string, 2)
		conns := make(chan net.Conn, 2)
		_, theirs := newScripted(t, l, 2, func(s *scripted) {
			read := readUpTo(t, s, taken)
			conn, unread, err := l.Release(&s.Conn, peerOf(&s.Conn))
			if err != nil || s.Loop() != nil || !s.Closed() {
				t.Errorf("releasing: %v", err)
				return
			}
			conns <- conn
			released <- read + string(unread)
		})
		inOneRound(t, l, func() {
			for _, there := range theirs {
				send(t, there, "first ")
			}
		})
		for range theirs {
			conn, got := <-conns, <-released
			defer conn.Close()
			for _, there := range theirs {
				if there.RemoteAddr().String() == conn.LocalAddr().String() {
					send(t, there, "second ")
				}
			}
			expect(t, conn, ("first second ")[len(got):])
			_ = conn.SetReadDeadline(time.Unix(1, 0))
			_, err := conn.Read(make([]byte, 1))
			if n, ok := err.(net.Error); !ok || !n.Timeout() || !n.(interface{ Temporary() bool }).Temporary() {
				t.Errorf("a deadline is %T, %v", err, err)
			}
			conn.Close()
			if _, err := conn.Write([]byte("x")); !errors.Is(err, net.ErrClosed) {
				t.Errorf("writing when it is closed: %v", err)
			}
		}
		if n := l.Pending(); n != 0 {
			t.Errorf("%d bytes are still counted", n)
		}
	}
}

func TestASocketThatListensIsOnALoop(t *testing.T) {
	l := newLoop(t)
	ln, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	s := &scripted{broken: make(chan error, 1)}
	accepted := make(chan int, 10)
	s.readable = func(s *scripted) {
		for {
			fd, from, err := s.Accept()
			if err == unix.EAGAIN {
				return
			}
			if err != nil || from.Addr().String() != "127.0.0.1" || from.Port() == 0 {
				t.Errorf("accepting: %v, %v", from, err)
				return
			}
			accepted <- fd
		}
	}
	if err := s.InitListening(ln, s); err != nil {
		t.Fatal(err)
	}
	l.Call(func() {
		if err := l.AddListening(&s.Conn); err != nil {
			t.Error(err)
		}
	})
	for range 3 {
		for range 3 {
			there, err := net.Dial("tcp4", ln.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			defer there.Close()
		}
		for range 3 {
			fd := <-accepted
			if flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFL, 0); err != nil || flags&unix.O_NONBLOCK == 0 {
				t.Errorf("an accepted socket has flags %x, %v", flags, err)
			}
			unix.Close(fd)
		}
	}
	l.Call(func() { s.Close() })
}
