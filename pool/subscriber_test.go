package pool

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/pgebb/pgebb/backend"
)

// audience is what some clients hear that listen to the channel "a".
type audience struct {
	registry *Registry
	pubsub   *PubSub
	clients  []*Subscriber
	woken    []int // how often each was
	log      bytes.Buffer
}

func newAudience(clients, size int) *audience {
	a := &audience{woken: make([]int, clients)}
	a.registry = &Registry{log: slog.New(slog.NewTextHandler(&a.log, nil))}
	a.registry.pubSubSize.Store(int64(size))
	ch := &channel{name: "a", subscribers: make(map[*Subscriber]bool)}
	a.pubsub = &PubSub{cluster: &Cluster{registry: a.registry}, user: "ann", database: "app", marks: "marks", channels: map[string]*channel{"a": ch}}
	for i := range clients {
		s := a.pubsub.Subscribe(uint64(i+1), func() { a.woken[i]++ })
		ch.subscribers[s] = true
		a.clients = append(a.clients, s)
	}
	return a
}

// notify has notifications come, which are called by their numbers and have a size at least.
func (a *audience) notify(from, to, size int) {
	for i := from; i < to; i++ {
		payload := fmt.Sprintf("%d ", i)
		payload += strings.Repeat("x", max(0, size-len(payload)))
		body := "\x00\x00\x00\x01a\x00" + payload + "\x00"
		message := append(binary.BigEndian.AppendUint32([]byte("A"), uint32(4+len(body))), body...)
		a.pubsub.heard(backend.Notification{Channel: []byte("a"), Payload: []byte(payload)}, message)
	}
}

// takes has a client take all there is, and returns the numbers of what that was.
func (a *audience) takes(t *testing.T, client int) (numbers []int) {
	t.Helper()
	for {
		b := a.clients[client].Take(1000)
		if len(b) == 0 {
			return numbers
		}
		for len(b) > 0 {
			size := 1 + int(binary.BigEndian.Uint32(b[1:]))
			var number int
			if _, err := fmt.Sscan(string(b[11:size]), &number); err != nil {
				t.Fatalf("%q is heard: %v", b[:size], err)
			}
			numbers, b = append(numbers, number), b[size:]
		}
	}
}

func (a *audience) dropped() int { return int(a.pubsub.channels["a"].dropped) }

// isRange reports whether numbers are from, from+1 and so on, up to to-1.
func isRange(numbers []int, from, to int) bool {
	for i, n := range numbers {
		if n != from+i {
			return false
		}
	}
	return len(numbers) == to-from
}

// TestABurstIsKeptForAClientThatHasNotBeenAsked, however many may wait for one that does not take
// them: it cannot have taken any yet.
func TestABurstIsKeptForAClientThatHasNotBeenAsked(t *testing.T) {
	a := newAudience(1, 100)
	a.notify(0, 5000, 0)
	if a.woken[0] != 1 || a.dropped() > 0 {
		t.Errorf("it is woken %d times, and %d are dropped", a.woken[0], a.dropped())
	}
	if got := a.takes(t, 0); !isRange(got, 0, 5000) {
		t.Errorf("it takes %d", len(got))
	}
	a.notify(5000, 6000, 0)
	if got := a.takes(t, 0); !isRange(got, 5000, 6000) || a.woken[0] != 2 {
		t.Errorf("it takes %d more, and is woken %d times", len(got), a.woken[0])
	}
}

// TestAFewAreKeptForAClientThatDeclines: as many as are configured, those that it has declined
// included, until it has taken all. Others are not concerned.
func TestAFewAreKeptForAClientThatDeclines(t *testing.T) {
	a := newAudience(2, 100)
	a.clients[0].Declined() // there is nothing to decline
	a.notify(0, 200, 0)
	a.clients[0].Declined()
	a.notify(200, 300, 0)
	if a.dropped() != 100 {
		t.Errorf("behind 200, %d of 100 are dropped", a.dropped())
	}
	for i := range 2 { // it takes about seventy each time
		a.clients[0].Take(1000)
		left := len(a.clients[0].queue)
		a.notify(300+100*i, 400+100*i, 0)
		if want := max(left, 100); left == 0 || len(a.clients[0].queue) != want {
			t.Errorf("with %d that it has not taken, %d are kept, want %d", left, len(a.clients[0].queue), want)
		}
	}
	a.takes(t, 0)
	a.notify(500, 1000, 0)
	if got := a.takes(t, 0); !isRange(got, 500, 1000) {
		t.Errorf("when it has taken all, it takes %d of 500", len(got))
	}
	if got := a.takes(t, 1); !isRange(got, 0, 1000) {
		t.Errorf("another takes %d", len(got))
	}
	a.notify(1000, 1001, 0)
	a.clients[0].Declined()
	a.clients[0].forget([]string{"a"})
	a.notify(1001, 2000, 0)
	if got := a.takes(t, 0); !isRange(got, 1001, 1101) {
		t.Errorf("a client that has declined what it does not listen to any more takes %d", len(got))
	}
}

// TestBytesBoundWhatIsKept at any moment, also for clients that have not been asked yet.
func TestBytesBoundWhatIsKept(t *testing.T) {
	const clients = 20
	for size, burst := range map[int]int{0: 100_000, 8000: 200} {
		a := newAudience(clients, 100)
		one, all := 0, int64(0)
		for i := range burst {
			a.notify(i, i+1, size)
			for _, s := range a.clients {
				one = max(one, s.bytes)
			}
			all = max(all, a.registry.unheard.Load()+a.registry.queued.Load())
		}
		if one > unheardLimit || all > UnheardLimit || a.dropped() == 0 {
			t.Errorf("of %d bytes: %d bytes wait for one, %d for all, and %d are dropped", size, one, all, a.dropped())
		}
		for i, s := range a.clients {
			if got := a.takes(t, i); len(got) == 0 || !isRange(got, 0, len(got)) {
				t.Errorf("of %d bytes: client %d takes %d", size, i, len(got))
			}
			s.Leave()
		}
		if r := a.registry; r.unheard.Load() != 0 || r.queued.Load() != 0 || r.unheardCount.Load() != 0 {
			t.Errorf("of %d bytes: in the end %d notifications, %d bytes and %d of queues are kept", size, r.unheardCount.Load(), r.unheard.Load(), r.queued.Load())
		}
	}
}

// TestTheQueuesOfManyClientsAreBoundedTogether: one notification for all of them takes little, its
// places in their queues do not.
func TestTheQueuesOfManyClientsAreBoundedTogether(t *testing.T) {
	a := newAudience(300, 100)
	most := int64(0)
	for i := range 20_000 {
		a.notify(i, i+1, 0)
		most = max(most, a.registry.unheard.Load()+a.registry.queued.Load())
	}
	if most > UnheardLimit || a.dropped() == 0 {
		t.Errorf("%d bytes are kept, and %d dropped", most, a.dropped())
	}
}

// TestTheLogSaysForWhomWhatIsDropped and why: once for a client and a reason.
func TestTheLogSaysForWhomWhatIsDropped(t *testing.T) {
	a := newAudience(2, 3)
	a.notify(0, 1, 0)
	a.clients[1].Declined()
	a.notify(1, 10, 0)
	a.notify(10, 200, 8000)
	want := []string{
		`client_id=2 user=ann database=app channel=a reason="it is in a transaction or does not read, and 3 may wait for it meanwhile: raise general.pub_sub_channel_size for more"`,
		`client_id=1 user=ann database=app channel=a reason="1048576 bytes of them may wait for one client"`,
	}
	lines := strings.Split(strings.TrimSpace(a.log.String()), "\n")
	if len(lines) != len(want) {
		t.Fatalf("the log says\n%s", &a.log)
	}
	for i, line := range lines {
		if !strings.Contains(line, `level=WARN msg="notifications for a client are dropped" `+want[i]) {
			t.Errorf("the log says\n%s\nwant\n%s", line, want[i])
		}
	}
}
