package pool

import (
	"slices"
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/pgebb/pgebb/internal/memory"
)

const (
	// UnheardLimit is how many bytes the notifications take at most that clients have not been
	// given yet, all together, each counted once; beyond it they are dropped.
	UnheardLimit = 16 << 20

	// unheardLimit is how many bytes of them wait for one client at most.
	unheardLimit = 1 << 20
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
	wake     func() // has the client take what there is; constant
	channels int    // that it is at; guarded by PubSub.mu

	mu      sync.Mutex
	queue   []*notification
	bytes   int  // of the messages in queue
	told    bool // wake was called and the client has not taken anything since
	dropped bool // something was, ever
	ended   bool
	left    bool // nothing is queued any more
}

// Subscribe makes a subscriber, which listens to nothing yet. wake is called in any goroutine when there is
// something to take.
func (h *PubSub) Subscribe(wake func()) *Subscriber {
	h.cluster.registry.subscribers.Add(1)
	return &Subscriber{pubsub: h, wake: wake}
}

// PubSub is where the subscriber is.
func (s *Subscriber) PubSub() *PubSub { return s.pubsub }

// put queues a notification; wake is to be called if it says so. If the notification did not fit, first says
// whether it is the first.
func (s *Subscriber) put(n *notification) (wake, fits, first bool) {
	r := n.registry
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.left {
		return false, true, false
	}
	if len(s.queue) >= int(r.pubSubSize.Load()) || s.bytes+len(n.message) > unheardLimit || r.unheard.Load() > UnheardLimit {
		first = !s.dropped
		s.dropped = true
		return false, false, first
	}
	n.refs.Add(1)
	before := cap(s.queue)
	s.queue = append(s.queue, n)
	r.queued.Add(queueSize(cap(s.queue)) - queueSize(before))
	s.bytes += len(n.message)
	wake = !s.told
	s.told = true
	return wake, true, false
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
	s.told = false
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
