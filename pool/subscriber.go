package pool

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/pgebb/pgebb/internal/memory"
)

const (
	// UnheardLimit is how many bytes the notifications take at most that clients have not been
	// given yet, all together, each counted once, with the queues that they are in; beyond it
	// they are dropped.
	UnheardLimit = 16 << 20

	// unheardLimit is how many bytes of them wait for one client at most.
	unheardLimit = 1 << 20

	// firstQueue is how many places a queue begins with.
	firstQueue = 4
)

// notification is one that was received, for all who are to be given it. It is immutable.
type notification struct {
	registry *Registry
	channel  string
	message  []byte
	refs     atomic.Int32 // who has it
}

func (r *Registry) newNotification(channel string, message []byte) *notification {
	n := &notification{registry: r, channel: channel, message: message}
	n.refs.Store(1)
	r.unheard.Add(n.size())
	r.unheardCount.Add(1)
	return n
}

func (n *notification) size() int64 {
	return memory.SizeOf(cap(n.message)) + memory.SizeOf(len(n.channel)) + memory.SizeOf(unsafe.Sizeof(*n))
}

// release gives up one's part.
func (n *notification) release() {
	if n.refs.Add(-1) == 0 {
		n.registry.unheard.Add(-n.size())
		n.registry.unheardCount.Add(-1)
	}
}

// Subscriber is a client that listens. It is safe for concurrent use.
type Subscriber struct {
	pubsub   *PubSub
	id       uint64 // the client's, for the log; constant
	wake     func() // has the client take what there is; constant
	channels int    // that it is at; guarded by PubSub.mu

	mu     sync.Mutex
	queue  []*notification
	bytes  int  // of the messages in queue
	told   bool // wake was called and the client has not taken all since
	behind bool // it has declined, and has not taken all since: pub_sub_channel_size holds
	warned [numBounds]bool
	ended  bool
	left   bool // nothing is queued any more
}

// bound is what a notification does not fit into.
type bound uint8

const (
	boundNone bound = iota
	boundCount
	boundClient
	boundAll
	numBounds
)

// reason is what the log says of it; size is pub_sub_channel_size.
func (b bound) reason(size int) string {
	switch b {
	case boundCount:
		return fmt.Sprintf("it is in a transaction or does not read, and %d may wait for it meanwhile: raise general.pub_sub_channel_size for more", size)
	case boundClient:
		return fmt.Sprintf("%d bytes of them may wait for one client", unheardLimit)
	}
	return fmt.Sprintf("%d bytes of them may wait for all clients together", UnheardLimit)
}

// Subscribe makes a subscriber, which listens to nothing yet, for the client with an id. wake is called in any
// goroutine when there is something to take.
func (h *PubSub) Subscribe(id uint64, wake func()) *Subscriber {
	h.cluster.registry.subscribers.Add(1)
	return &Subscriber{pubsub: h, id: id, wake: wake}
}

// PubSub is where the subscriber is.
func (s *Subscriber) PubSub() *PubSub { return s.pubsub }

// put queues a notification, if that fits; wake is to be called if it says so. warn says that
// it is the first that does not fit into that bound.
//
// How many wait is bounded only while the client does not take what it is offered: of a burst
// all come before it gets to take the first, and one that reads is to lose none of them.
func (s *Subscriber) put(n *notification) (wake bool, full bound, warn bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.left {
		return false, boundNone, false
	}
	if full = s.boundLocked(n); full != boundNone {
		warn = !s.warned[full]
		s.warned[full] = true
		return false, full, warn
	}
	n.refs.Add(1)
	if grown := s.grownLocked(); grown > cap(s.queue) {
		n.registry.queued.Add(queueSize(grown) - queueSize(cap(s.queue)))
		s.queue = append(make([]*notification, 0, grown), s.queue...)
	}
	s.queue = append(s.queue, n)
	s.bytes += len(n.message)
	wake = !s.told
	s.told = true
	return wake, boundNone, false
}

// boundLocked is what a notification does not fit into.
func (s *Subscriber) boundLocked(n *notification) bound {
	r := n.registry
	switch {
	case s.behind && len(s.queue) >= int(r.pubSubSize.Load()):
		return boundCount
	case s.bytes+len(n.message) > unheardLimit:
		return boundClient
	case r.unheard.Load()+r.queued.Load()+queueSize(s.grownLocked())-queueSize(cap(s.queue)) > UnheardLimit:
		return boundAll
	}
	return boundNone
}

// grownLocked is the capacity of the queue with one more in it.
func (s *Subscriber) grownLocked() int {
	if len(s.queue) < cap(s.queue) {
		return cap(s.queue)
	}
	return max(firstQueue, 2*cap(s.queue))
}

// Declined says that the client was woken and cannot take anything now: it is in a transaction,
// or does not read. Until it has taken all, pub_sub_channel_size bounds what comes besides.
func (s *Subscriber) Declined() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.behind = s.behind || len(s.queue) > 0
}

func queueSize(n int) int64 { return memory.SizeOf(n * int(unsafe.Sizeof((*notification)(nil)))) }

// Take takes notifications, as messages one behind the other, of about as many bytes as most
// says. If the client does not take all at once, it takes the rest when it can; it is not woken for that.
func (s *Subscriber) Take(most int) (b []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := 0
	for i < len(s.queue) && len(b) < most {
		b = append(b, s.queue[i].message...)
		s.queue[i].release()
		i++
	}
	s.bytes -= len(b)
	if i < len(s.queue) {
		n := copy(s.queue, s.queue[i:])
		clear(s.queue[n:])
		s.queue = s.queue[:n]
		return b
	}
	s.emptyLocked()
	s.told, s.behind = false, false
	return b
}

// forget drops what there is of some channels.
func (s *Subscriber) forget(channels []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.queue = slices.DeleteFunc(s.queue, func(n *notification) bool {
		if !slices.Contains(channels, n.channel) {
			return false
		}
		s.bytes -= len(n.message)
		n.release()
		return true
	})
	if len(s.queue) == 0 {
		s.emptyLocked()
	}
}

// emptyLocked gives back the memory of the queue, in which nothing is.
func (s *Subscriber) emptyLocked() {
	s.pubsub.cluster.registry.queued.Add(-queueSize(cap(s.queue)))
	s.queue = nil
}

// Ended reports whether nothing will come any more.
func (s *Subscriber) Ended() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ended
}

func (s *Subscriber) end() {
	s.mu.Lock()
	s.ended = true
	s.mu.Unlock()
	s.wake()
}

// Leave is called once, when the client is gone.
func (s *Subscriber) Leave() {
	s.pubsub.leave(s)
	s.mu.Lock()
	for _, n := range s.queue {
		n.release()
	}
	s.left, s.bytes = true, 0
	s.emptyLocked()
	s.mu.Unlock()
	s.pubsub.cluster.registry.subscribers.Add(-1)
}
