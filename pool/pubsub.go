package pool

import (
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/pgebb/pgebb/backend"
	"github.com/pgebb/pgebb/config"
)

// ErrPubSubEnded says that a cluster is no longer in the configuration, or that pgebb is
// shutting down.
var ErrPubSubEnded = errors.New("nobody listens here any more")

// PubSub listens for all clients of a user at a database: one connection to the primary,
// besides those of the pool, at which LISTEN is run once for each channel however many
// clients listen to it. The connection is there while anybody listens, and a little longer;
// when it is lost, it is made anew. It is safe for concurrent use.
//
// Its functions that are given a done call it once, in any goroutine, which may hold no lock
// that these functions take.
type PubSub struct {
	cluster        *Cluster      // constant
	user, database string        // as clients name them; constant
	marks          string        // the channel of marks, see Await; constant
	wake           chan struct{} // one place: there is something to do

	// mu is taken last of all locks but that of a Subscriber.
	mu       sync.Mutex
	channels map[string]*channel
	changed  map[string]*channel      // of channels, what is to be looked at
	awaited  map[string]*subscription // by the payload of their marks
	ready    []func(error)            // who waits for the connection
	there    bool                     // the connection listens to what it is to listen to
	encoding string                   // the client_encoding that notifications come in; empty before the first connection
	running  bool                     // its goroutine is there
	ended    bool                     // for good
	renewed  int                      // how often the connection was to be replaced
	failures int                      // attempts to connect that failed in a row
	retryAt  time.Duration            // no attempt before that, in loop.Now
}

// channel is one that somebody listens to, or has just listened to. It is guarded by the mu
// of its PubSub.
type channel struct {
	name              string
	subscribers       map[*Subscriber]bool // true for who is given what comes
	listening         bool                 // Postgres has said so
	waiting           []*subscription      // for that
	received, dropped uint64               // notifications
}

// subscription is one client's wish to listen to some channels.
type subscription struct {
	subscriber *Subscriber
	channels   []string
	left       int // of them, that Postgres has not answered yet
	done       func(error)
}

func newPubSub(c *Cluster, set *config.Pool) *PubSub {
	return &PubSub{
		cluster: c, user: set.User, database: set.Database, marks: backend.OwnPrefix + strings.ToLower(rand.Text()), wake: make(chan struct{}, 1),
		channels: make(map[string]*channel), changed: make(map[string]*channel), awaited: make(map[string]*subscription),
	}
}

// PubSub is what listens for the clients of the pool's user at its database.
func (p *Pool) PubSub() *PubSub {
	c := p.cluster
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.pubsub == nil {
		c.pubsub = newPubSub(c, p.Settings())
	}
	return c.pubsub
}

// hasPubSub is it if anybody has ever listened, otherwise nil.
func (c *Cluster) hasPubSub() *PubSub {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.pubsub
}

// relisten replaces the connection that listens, if there is one.
func (c *Cluster) relisten() {
	if h := c.hasPubSub(); h != nil {
		h.renew()
	}
}

// Marks is the channel of marks.
func (h *PubSub) Marks() string { return h.marks }

// Connect calls done when the connection is there, or the reason why it cannot be made is known.
func (h *PubSub) Connect(done func(error)) {
	h.mu.Lock()
	switch {
	case h.ended, h.cluster.registry.ctx.Err() != nil:
		h.mu.Unlock()
		done(ErrPubSubEnded)
		return
	case h.there:
		h.mu.Unlock()
		done(nil)
		return
	}
	h.ready = append(h.ready, done)
	h.startLocked()
	h.mu.Unlock()
	h.nudge()
}

// startLocked starts the goroutine that has the connection, unless it runs. It ends when
// nobody has listened for a while.
func (h *PubSub) startLocked() {
	if !h.running {
		h.running = true
		h.cluster.registry.wg.Go(h.run)
	}
}

func (h *PubSub) nudge() {
	select {
	case h.wake <- struct{}{}:
	default:
	}
}

// Listen calls done when Postgres listens to the channels. The subscriber is not given
// anything of them before [PubSub.Await] has been.
func (h *PubSub) Listen(s *Subscriber, channels []string, done func(error)) {
	w := &subscription{subscriber: s, channels: channels, done: done}
	h.mu.Lock()
	if h.ended || h.cluster.registry.ctx.Err() != nil {
		h.mu.Unlock()
		done(ErrPubSubEnded)
		return
	}
	for _, name := range channels {
		c := h.channels[name]
		if c == nil {
			c = &channel{name: name, subscribers: make(map[*Subscriber]bool)}
			h.channels[name] = c
		}
		if _, has := c.subscribers[s]; !has {
			c.subscribers[s] = false
			s.channels++
		}
		if !c.listening {
			w.left++
			c.waiting = append(c.waiting, w)
		}
		h.changed[name] = c
	}
	left := w.left
	h.startLocked()
	h.mu.Unlock()
	if left == 0 {
		done(nil)
		return
	}
	h.nudge()
}

// Await calls done when a mark has come, that is a notification with a payload that nobody
// else has; what comes behind it on the channels goes to the subscriber. It must be called before the
// mark is sent. If the connection is lost before, it is given an error.
func (h *PubSub) Await(payload string, s *Subscriber, channels []string, done func(error)) {
	h.mu.Lock()
	connected := h.there
	if connected {
		h.awaited[payload] = &subscription{subscriber: s, channels: channels, done: done}
	}
	h.mu.Unlock()
	if !connected {
		done(errConnectionLost)
	}
}

var errConnectionLost = errors.New("the connection that listens was lost")

// Unlisten has the subscriber not be given any more of the channels, nor what it has not taken.
func (h *PubSub) Unlisten(s *Subscriber, channels []string) {
	h.mu.Lock()
	for _, name := range channels {
		h.dropLocked(s, h.channels[name])
	}
	h.mu.Unlock()
	s.forget(channels)
	h.nudge()
}

// leave forgets a subscriber.
func (h *PubSub) leave(s *Subscriber) {
	h.mu.Lock()
	for payload, w := range h.awaited {
		if w.subscriber == s {
			delete(h.awaited, payload)
		}
	}
	if s.channels > 0 {
		for _, c := range h.channels {
			h.dropLocked(s, c)
		}
	}
	h.mu.Unlock()
	h.nudge()
}

func (h *PubSub) dropLocked(s *Subscriber, c *channel) {
	if c == nil {
		return
	}
	if _, has := c.subscribers[s]; !has {
		return
	}
	delete(c.subscribers, s)
	s.channels--
	c.waiting = slices.DeleteFunc(c.waiting, func(w *subscription) bool { return w.subscriber == s })
	if len(c.subscribers) == 0 {
		h.changed[c.name] = c
	}
}

// heard takes a notification in. It runs in the goroutine that reads.
func (h *PubSub) heard(n backend.Notification, message []byte) {
	if string(n.Channel) == h.marks {
		h.marked(string(n.Payload))
		return
	}
	r := h.cluster.registry
	x := r.newNotification(string(n.Channel), message)
	var woken []*Subscriber
	var losses []loss
	h.mu.Lock()
	if c := h.channels[string(n.Channel)]; c != nil {
		c.received++
		for s, given := range c.subscribers {
			if !given {
				continue
			}
			switch wake, full, warn := s.put(x); {
			case wake:
				woken = append(woken, s)
			case full != boundNone:
				c.dropped++
				if warn {
					losses = append(losses, loss{s.id, full})
				}
			}
		}
	}
	h.mu.Unlock()
	x.release()
	for _, s := range woken {
		s.wake()
	}
	for _, l := range losses {
		r.log.Warn("notifications for a client are dropped", "client_id", l.client, "user", h.user, "database", h.database,
			"channel", string(n.Channel), "reason", l.full.reason(int(r.pubSubSize.Load())))
	}
}

// loss is what the log is told of a client that a notification was dropped for.
type loss struct {
	client uint64
	full   bound
}

// marked acts on a mark.
func (h *PubSub) marked(payload string) {
	h.mu.Lock()
	w := h.awaited[payload]
	delete(h.awaited, payload)
	if w != nil {
		for _, name := range w.channels {
			if c := h.channels[name]; c != nil {
				if _, has := c.subscribers[w.subscriber]; has {
					c.subscribers[w.subscriber] = true
				}
			}
		}
	}
	h.mu.Unlock()
	if w != nil {
		w.done(nil)
	}
}

// renew replaces the connection by one to whoever is the primary now, as the configuration is
// now.
func (h *PubSub) renew() {
	h.mu.Lock()
	h.renewed++
	h.retryAt = 0
	h.mu.Unlock()
	h.nudge()
}

// end closes the connection for good, and has subscribers told.
func (h *PubSub) end() {
	h.mu.Lock()
	h.ended = true
	all := map[*Subscriber]bool{}
	for _, c := range h.channels {
		maps.Copy(all, c.subscribers)
	}
	waiting := h.takeWaitingLocked()
	h.mu.Unlock()
	h.nudge()
	for _, done := range waiting {
		done(ErrPubSubEnded)
	}
	for s := range all {
		s.end()
	}
}

// takeWaitingLocked takes everybody who waits for something.
func (h *PubSub) takeWaitingLocked() (all []func(error)) {
	all, h.ready = h.ready, nil
	seen := map[*subscription]bool{}
	for _, c := range h.channels {
		for _, w := range c.waiting {
			if !seen[w] {
				seen[w] = true
				all = append(all, w.done)
			}
		}
		c.waiting = nil
	}
	for _, w := range h.awaited {
		all = append(all, w.done)
	}
	clear(h.awaited)
	return all
}

// ListenerRow is what is known of a channel that clients listen to.
type ListenerRow struct {
	User, Database, Channel string
	Listeners               int
	Received, Dropped       uint64
}

// Listeners are the channels that clients listen to in transaction and statement mode.
func (r *Registry) Listeners() (rows []ListenerRow) {
	for _, h := range r.listening() {
		h.mu.Lock()
		for _, name := range slices.Sorted(maps.Keys(h.channels)) {
			ch := h.channels[name]
			rows = append(rows, ListenerRow{h.user, h.database, name, len(ch.subscribers), ch.received, ch.dropped})
		}
		h.mu.Unlock()
	}
	slices.SortStableFunc(rows, func(a, b ListenerRow) int {
		return strings.Compare(a.Database+"\x00"+a.User, b.Database+"\x00"+b.User)
	})
	return rows
}

// listening is what listens for clients, wherever any has ever listened.
func (r *Registry) listening() (all []*PubSub) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	for _, c := range r.clusters {
		if h := c.hasPubSub(); h != nil {
			all = append(all, h)
		}
	}
	return all
}

// Connected reports whether the connection is there, and the client_encoding in which
// notifications come.
func (h *PubSub) Connected() (encoding string, ok bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.encoding, h.there
}

// primary is the pool of the host that LISTEN goes to.
func (c *Cluster) primary() (*Pool, error) {
	m := c.members.Load()
	switch {
	case m.primary != nil:
		return m.primary, nil
	case len(m.pools) == 1:
		return m.pools[0], nil
	}
	return nil, fmt.Errorf("listening: %w", errNoPrimary)
}
