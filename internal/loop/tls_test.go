package loop_test

import (
	"bytes"
	"crypto/rand"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pgebb/pgebb/internal/loop"
	"github.com/pgebb/pgebb/internal/testcert"
)

// tlsConfigs are for the two sides of connections.
func tlsConfigs(t *testing.T, version uint16) (server, client *tls.Config) {
	t.Helper()
	authority, err := testcert.New(0)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := authority.Issue(testcert.Options{Names: []string{"here"}})
	if err != nil {
		t.Fatal(err)
	}
	server = &tls.Config{Certificates: []tls.Certificate{cert.TLS()}, SessionTicketsDisabled: true, DynamicRecordSizingDisabled: true}
	client = &tls.Config{RootCAs: authority.Pool(), ServerName: "here", MinVersion: version, MaxVersion: version, DynamicRecordSizingDisabled: true}
	return server, client
}

// pieces is a socket whose writes can be taken apart.
type pieces struct {
	net.Conn
	mu    sync.Mutex
	write func(p []byte) error // in place of the socket's; guarded by mu
}

func (p *pieces) Write(b []byte) (int, error) {
	p.mu.Lock()
	write := p.write
	p.mu.Unlock()
	if write == nil {
		return p.Conn.Write(b)
	}
	return len(b), write(b)
}

func (p *pieces) set(write func(p []byte) error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.write = write
}

// encrypted is two ends of a connection of which the handshake is done.
func encrypted(t *testing.T, server, client *tls.Config) (ours *loop.TLS, theirs *tls.Conn, wire *pieces) {
	t.Helper()
	nc, peer := socketPair(t, "tcp")
	wire = &pieces{Conn: peer}
	theirs = tls.Client(wire, client)
	shaken := make(chan error, 1)
	go func() { shaken <- theirs.Handshake() }()
	ours, err := loop.Server(nc, nil, server)
	if err := errors.Join(err, <-shaken); err != nil {
		t.Fatal(err)
	}
	return ours, theirs, wire
}

// encryptedEcho is one that lives on a loop.
func encryptedEcho(t *testing.T, l *loop.Loop, version uint16) (*echo, *tls.Conn, *pieces) {
	t.Helper()
	server, client := tlsConfigs(t, version)
	ours, theirs, wire := encrypted(t, server, client)
	e := &echo{closed: make(chan error, 1)}
	add(t, l, e, ours)
	return e, theirs, wire
}

func add(t *testing.T, l *loop.Loop, e *echo, nc net.Conn) {
	t.Helper()
	if err := e.Init(nc, e); err != nil {
		t.Fatal(err)
	}
	l.Call(func() {
		if err := l.Add(&e.Conn); err != nil {
			t.Error(err)
		}
	})
}

// bothVersions runs a test with TLS 1.2 and 1.3.
func bothVersions(t *testing.T, test func(t *testing.T, version uint16)) {
	for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
		t.Run(strings.ReplaceAll(tls.VersionName(version), " ", "-"), func(t *testing.T) { test(t, version) })
	}
}

func random(n int) []byte {
	b := make([]byte, n)
	_, _ = rand.Read(b) // never fails
	return b
}

// returns checks that what is sent comes back.
func returns(t *testing.T, conn net.Conn, sent []byte) {
	t.Helper()
	_ = conn.SetReadDeadline(time.Now().Add(20 * time.Second))
	got := make([]byte, len(sent))
	if n, err := io.ReadFull(conn, got); err != nil || !bytes.Equal(got, sent) {
		t.Fatalf("of %d bytes %d come back, not all the same: %v", len(sent), n, err)
	}
}

func TestTLSBytesOfAllLengthsComeThrough(t *testing.T) {
	bothVersions(t, func(t *testing.T, version uint16) {
		l := newLoop(t)
		_, theirs, _ := encryptedEcho(t, l, version)
		for _, n := range []int{1, 5, 1000, 1 << 14, 1<<14 + 1, loop.BufferSize - 1, loop.BufferSize, loop.BufferSize + 1, 1_000_000, 1} {
			sent := random(n)
			go func() { _, _ = theirs.Write(sent) }()
			returns(t, theirs, sent)
		}
		if n := l.PartialRecords(); n != 0 {
			t.Errorf("%d bytes of records are still held", n)
		}
	})
}

func TestATLSRecordMayBeSplitAnywhere(t *testing.T) {
	bothVersions(t, func(t *testing.T, version uint16) {
		l := newLoop(t)
		_, theirs, wire := encryptedEcho(t, l, version)
		sent := []byte("a record of some length, and nothing else")
		var record int
		wire.set(func(p []byte) error { record = len(p); _, err := wire.Conn.Write(p); return err })
		write(t, theirs, sent)
		returns(t, theirs, sent)
		for at := 1; at < record; at++ {
			wire.set(func(p []byte) error { return inParts(l, wire.Conn, p[:at], p[at:]) })
			write(t, theirs, sent)
			returns(t, theirs, sent)
		}
		if n := l.PartialRecords(); n != 0 {
			t.Errorf("%d bytes of records are still held", n)
		}
	})
}

func TestTLSBytesMayComeOneByOne(t *testing.T) {
	bothVersions(t, func(t *testing.T, version uint16) {
		l := newLoop(t)
		_, theirs, wire := encryptedEcho(t, l, version)
		wire.set(func(p []byte) error {
			var parts [][]byte
			for i := range p {
				parts = append(parts, p[i:i+1])
			}
			return inParts(l, wire.Conn, parts...)
		})
		sent := random(5000) // so that what there is of a record is kept in both ways
		write(t, theirs, sent)
		returns(t, theirs, sent)
	})
}

func write(t *testing.T, conn net.Conn, p []byte) {
	t.Helper()
	if _, err := conn.Write(p); err != nil {
		t.Fatal(err)
	}
}

// inParts writes parts of a record, each when the loop has had time to see the last.
func inParts(l *loop.Loop, conn net.Conn, parts ...[]byte) error {
	for _, p := range parts {
		if _, err := conn.Write(p); err != nil {
			return err
		}
		l.Call(func() {})
	}
	return nil
}

// slowly reads in small pieces.
type slowly struct{ echo }

func (s *slowly) Readable() {
	var b [100]byte
	n, more, err := s.Read(b[:])
	if err != nil {
		s.Close()
		s.closed <- err
		return
	}
	if err := s.Write(b[:n]); err != nil {
		s.Broken(err)
		return
	}
	if more {
		s.Resume()
	}
}

func TestWhatIsReadOfATLSRecordInPartIsReadOn(t *testing.T) {
	bothVersions(t, func(t *testing.T, version uint16) {
		l := newLoop(t)
		server, client := tlsConfigs(t, version)
		ours, theirs, _ := encrypted(t, server, client)
		s := &slowly{echo{closed: make(chan error, 1)}}
		if err := s.Init(ours, s); err != nil {
			t.Fatal(err)
		}
		l.Call(func() { _ = l.Add(&s.Conn) })
		for _, n := range []int{99, 100, 101, 16 << 10, 100_000} {
			sent := random(n)
			go func() { _, _ = theirs.Write(sent) }()
			returns(t, theirs, sent)
		}
		if n := l.PartialRecords(); n != 0 {
			t.Errorf("%d bytes of records are still held", n)
		}
	})
}

func TestWhatWasReadTooEarlyOfATLSConnectionIsNotForgotten(t *testing.T) {
	bothVersions(t, func(t *testing.T, version uint16) {
		server, client := tlsConfigs(t, version)
		ours, theirs, _ := encrypted(t, server, client)
		// Three records at once, the first of which is read with blocking calls.
		sent := []byte("onetwothree")
		var gathered []byte
		theirs.NetConn().(*pieces).set(func(p []byte) error { gathered = append(gathered, p...); return nil })
		for _, s := range []string{"one", "two", "three"} {
			write(t, theirs, []byte(s))
		}
		theirs.NetConn().(*pieces).set(nil)
		write(t, theirs.NetConn(), gathered)
		first := make([]byte, 2)
		if _, err := io.ReadFull(ours, first); err != nil || string(first) != "on" {
			t.Fatalf("%q, %v", first, err)
		}
		e := &echo{closed: make(chan error, 1)}
		add(t, newLoop(t), e, ours)
		returns(t, theirs, sent[2:])
	})
}

func TestATLSPeerThatDoesNotReadIsWaitedFor(t *testing.T) {
	bothVersions(t, func(t *testing.T, version uint16) {
		l := newLoop(t)
		e, theirs, _ := encryptedEcho(t, l, version)
		sent := random(20 << 20)
		go func() { _, _ = theirs.Write(sent) }()
		var pending int
		for pending == 0 {
			l.Call(func() { pending = e.Pending() })
		}
		if most := 2 * loop.BufferSize; pending > most {
			t.Errorf("%d bytes are pending, more than %d", pending, most)
		}
		returns(t, theirs, sent)
	})
}

func TestATLSConnectionMovesBetweenLoops(t *testing.T) {
	a, b := newLoop(t), newLoop(t)
	e, theirs, wire := encryptedEcho(t, a, tls.VersionTLS13)
	var record []byte
	wire.set(func(p []byte) error { record = bytes.Clone(p); return nil })
	sent := random(4000)
	write(t, theirs, sent)
	if err := inParts(a, wire.Conn, record[:3000]); err != nil {
		t.Fatal(err)
	}
	for a.PartialRecords() == 0 {
		a.Call(func() {})
	}
	a.Call(func() {
		if err := a.Remove(&e.Conn); err != nil {
			t.Error(err)
		}
	})
	b.Call(func() {
		if err := b.Add(&e.Conn); err != nil {
			t.Error(err)
		}
	})
	if a.PartialRecords() != 0 || b.PartialRecords() < 3000 {
		t.Errorf("the loop it has left counts %d bytes, the other %d", a.PartialRecords(), b.PartialRecords())
	}
	if err := inParts(b, wire.Conn, record[3000:]); err != nil {
		t.Fatal(err)
	}
	returns(t, theirs, sent)
}

func TestTheEndOfATLSStream(t *testing.T) {
	for name, c := range map[string]struct {
		last func(theirs *tls.Conn, wire *pieces) // what the peer does last
		want error
		text string // in the error
	}{
		"a close_notify": {func(theirs *tls.Conn, _ *pieces) { _ = theirs.CloseWrite() }, io.EOF, ""},
		"none":           {func(_ *tls.Conn, wire *pieces) { wire.Close() }, io.EOF, ""},
		"in the middle of a record": {func(theirs *tls.Conn, wire *pieces) {
			wire.set(func(p []byte) error { _, _ = wire.Conn.Write(p[:len(p)-1]); return wire.Close() })
			_, _ = theirs.Write([]byte("half of it"))
		}, io.ErrUnexpectedEOF, ""},
		"garbage": {func(_ *tls.Conn, wire *pieces) { _, _ = wire.Conn.Write([]byte("this is no record")) }, nil, "tls:"},
		"a record of someone else": {func(_ *tls.Conn, wire *pieces) {
			_, _ = wire.Conn.Write(append([]byte{23, 3, 3, 0, 40}, random(40)...))
		}, nil, "bad record MAC"},
		"a record that is too long": {func(_ *tls.Conn, wire *pieces) { _, _ = wire.Conn.Write([]byte{23, 3, 3, 0xff, 0xff, 0}) }, nil, "oversized record"},
	} {
		t.Run(strings.ReplaceAll(name, " ", "-"), func(t *testing.T) {
			bothVersions(t, func(t *testing.T, version uint16) {
				l := newLoop(t)
				e, theirs, wire := encryptedEcho(t, l, version)
				write(t, theirs, []byte("hello"))
				returns(t, theirs, []byte("hello"))
				c.last(theirs, wire)
				err := <-e.closed
				if c.want != nil && !errors.Is(err, c.want) || c.text != "" && !strings.Contains(err.Error(), c.text) {
					t.Errorf("the stream ends with %v", err)
				}
				if n := l.PartialRecords(); n != 0 {
					t.Errorf("%d bytes of records are still held", n)
				}
			})
		})
	}
}

func TestTheEndOfOurTLSStreamIsMeant(t *testing.T) {
	bothVersions(t, func(t *testing.T, version uint16) {
		l := newLoop(t)
		e, theirs, _ := encryptedEcho(t, l, version)
		l.Call(func() {
			if err := e.Write([]byte("goodbye")); err != nil {
				t.Error(err)
			}
			if err := e.EndWrite(); err != nil {
				t.Error(err)
			}
		})
		returns(t, theirs, []byte("goodbye"))
		if n, err := theirs.Read(make([]byte, 1)); err != io.EOF {
			t.Errorf("behind it are %d bytes, %v", n, err)
		}
		write(t, theirs, []byte("and read on"))
		_ = theirs.CloseWrite()
		if err := <-e.closed; err != nil && !strings.Contains(err.Error(), "writing") {
			t.Errorf("the echo ends with %v", err)
		}
	})
}

func TestAHandshakeWithWhatIsNone(t *testing.T) {
	server, _ := tlsConfigs(t, 0)
	nc, theirs := socketPair(t, "tcp")
	write(t, theirs, []byte("GET / HTTP/1.1\r\n\r\n"))
	theirs.(*net.TCPConn).CloseWrite()
	if _, err := loop.Server(nc, nil, server); err == nil || !strings.Contains(err.Error(), "TLS handshake: ") {
		t.Errorf("the error is %v", err)
	}
	nc.Close()
}

// heap is the number of bytes in use after a collection.
func heap() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

func TestATLSConnectionKeepsNoBuffers(t *testing.T) {
	bothVersions(t, func(t *testing.T, version uint16) {
		const n, most = 50, 7000
		l := newLoop(t)
		server, client := tlsConfigs(t, version)
		sent := random(40_000)
		talk := func(theirs net.Conn) { // with the longest records
			go func() { _, _ = theirs.Write(sent) }()
			returns(t, theirs, sent)
		}
		e, theirs, _ := encrypted(t, server, client) // what the first one needs is not each one's
		add(t, l, &echo{closed: make(chan error, 1)}, e)
		talk(theirs)
		var ours []*loop.TLS
		var peers []*tls.Conn
		before := heap()
		for range n {
			e, theirs, _ := encrypted(t, server, client)
			ours, peers = append(ours, e), append(peers, theirs)
		}
		for i := range n {
			add(t, l, &echo{closed: make(chan error, 1)}, ours[i])
			talk(peers[i])
		}
		ours = nil
		both := heap() - before
		// What the other ends take is found out by letting go of them.
		for _, p := range peers {
			p.NetConn().(*pieces).Conn = nil
		}
		peers = nil
		one := (heap() - before) / n
		t.Logf("%d bytes each, of which the heap had %d with their peers", one, both/n)
		if one > most {
			t.Errorf("an idle connection takes %d bytes of heap, want at most %d", one, most)
		}
		var held loop.Held
		l.Call(func() { held = l.Held() })
		if each := held.TLS / held.TLSConns; held.TLSConns != n+1 || each < one*7/10 || each > one*13/10 {
			t.Errorf("%d connections are counted with %d bytes each, and take %d", held.TLSConns, each, one)
		}
		runtime.KeepAlive(l)
	})
}
