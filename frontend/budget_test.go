package frontend

import (
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/pgebb/pgebb/internal/loop"
	"github.com/pgebb/pgebb/internal/memory"
	"github.com/pgebb/pgebb/internal/wire"
)

const mib = 1 << 20

// limited is a frontend with a limit of 100 MiB, that listens.
func limited(t *testing.T) *Frontend {
	t.Helper()
	f := newFrontend(t, "", io.Discard)
	f.budget = memory.NewBudget(100 * mib)
	f.watchBudget()
	f.renaming.Store(false)
	if err := f.Listen(); err != nil {
		t.Fatal(err)
	}
	return f
}

// firstLoop is the only one.
func (f *Frontend) firstLoop() *loop.Loop { return f.loops.Loops()[0] }

// waitDeferred returns when so many clients wait for memory.
func waitDeferred(t *testing.T, f *Frontend, n int) {
	t.Helper()
	deadline := time.Now().Add(10 * time.Second)
	for is := -1; is != n; {
		if time.Now().After(deadline) {
			t.Fatalf("%d clients wait for memory, want %d", is, n)
		}
		f.firstLoop().Call(func() { is = len(f.unread[0].clients) })
	}
}

func sendQuery(t *testing.T, conn net.Conn) {
	t.Helper()
	if _, err := conn.Write(wire.AppendQuery(nil, "SELECT 1")); err != nil {
		t.Fatal(err)
	}
}

// message reads one; body is that of an ErrorResponse as text.
func message(t *testing.T, conn net.Conn) (typ byte, body string) {
	t.Helper()
	var header [wire.HeaderSize]byte
	if _, err := io.ReadFull(conn, header[:]); err != nil {
		t.Fatal(err)
	}
	typ, size := wire.Header(header[:])
	b := make([]byte, size-wire.HeaderSize)
	if _, err := io.ReadFull(conn, b); err != nil {
		t.Fatal(err)
	}
	return typ, string(b)
}

func TestRequestsWaitUnreadUntilThereIsMemory(t *testing.T) {
	f := limited(t)
	conn := logInAt(t, f.address(0))
	f.budget.Transit(26 * mib)
	sendQuery(t, conn)
	waitDeferred(t, f, 1)
	if holds := f.Memory(); memory.Sum(holds, memory.OnHeap) > mib {
		t.Errorf("something of the request is held: %+v", holds)
	}
	f.budget.Transit(-26 * mib)
	for typ := byte(0); typ != wire.ReadyForQuery; {
		var body string
		if typ, body = message(t, conn); typ == wire.ErrorResponse {
			t.Fatalf("the client is told %q", body)
		}
	}
	waitDeferred(t, f, 0)
}

func TestWhoWaitsTooLongForMemoryIsToldWhy(t *testing.T) {
	f := limited(t)
	conn, other := logInAt(t, f.address(0)), logInAt(t, f.address(0))
	f.budget.Transit(26 * mib)
	sendQuery(t, conn)
	sendQuery(t, other)
	waitDeferred(t, f, 2)
	other.Close()
	l := f.firstLoop()
	l.Call(func() { f.turnAway(l, l.Now()) })
	waitDeferred(t, f, 2) // not yet
	l.Call(func() { f.turnAway(l, l.Now()+f.cfg.Load().General.CheckoutTimeout) })
	if typ, body := message(t, conn); typ != wire.ErrorResponse || !strings.Contains(body, "53200") || !strings.Contains(body, "memory.limit of 104857600 bytes") {
		t.Errorf("the client is told %q %q", typ, body)
	}
	waitDeferred(t, f, 0)
	f.budget.Transit(-26 * mib)
}

func TestLoginsAreRefusedWhenThereIsHardlyAnyMemory(t *testing.T) {
	f := limited(t)
	f.budget.Transit(40 * mib)
	conn := dial(t, f.address(0))
	if _, err := conn.Write(packet(wire.Version30, "user", "u", "database", "d")); err != nil {
		t.Fatal(err)
	}
	if typ, body := message(t, conn); typ != wire.ErrorResponse || !strings.Contains(body, "53200") || !strings.Contains(body, "memory.limit") {
		t.Errorf("the client is told %q %q", typ, body)
	}
	f.budget.Transit(-40 * mib)
	logInAt(t, f.address(0))
	if f.budget.Spared().TurnedAway != 1 {
		t.Errorf("%+v", f.budget.Spared())
	}
}
