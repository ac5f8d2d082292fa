package pool

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pgebb/pgebb/backend"
	"github.com/pgebb/pgebb/cache"
	"github.com/pgebb/pgebb/config"
	"github.com/pgebb/pgebb/internal/loop"
)

// ErrRetired says that the pool is no longer in the configuration; there may be
// another for the same user and database.
var ErrRetired = errors.New("the pool was removed from the configuration")

// TimeoutError ends a wait for a server.
type TimeoutError struct {
	Timeout time.Duration
	Size    int   // of the pool
	Last    error // why the last attempt to connect failed; nil if it did not
}

func (e *TimeoutError) Error() string {
	text := fmt.Sprintf("no server became free within %v (pool size %d)", e.Timeout, e.Size)
	if e.Last != nil {
		text += "; the last attempt to connect failed: " + e.Last.Error()
	}
	return text
}

func (e *TimeoutError) Unwrap() error { return e.Last }

// Pool is the servers of one user at one database on one host.
type Pool struct {
	ID       uint64 // unique in the process; constant
	registry *Registry
	cluster  *Cluster // of the same user and database; constant
	host     *host    // constant; what is in it is guarded by Registry.mu
	settings atomic.Pointer[config.Pool]
	greeting atomic.Pointer[backend.Greeting] // of the latest server; nil before the first
	Resolved *backend.Resolved                // start-up parameters of its clients; safe for concurrent use

	banned atomic.Bool // written under mu
	down   atomic.Bool // the host cannot be reached and there is no server; written under mu

	counters []backend.Counters // one for each loop, touched by that loop only
	busy     atomic.Bool        // no server is idle where one was last looked for; changed under mu

	mu         sync.Mutex
	idle       [][]*backend.Server // per loop, last used at the end
	waiting    waiters
	servers    map[*backend.Server]struct{} // all that live, idle or not
	connecting int                          // dials and logins under way
	retired    bool
	held       hold          // 0 unless clients are made to wait
	renewed    time.Duration // servers that were ready before are closed when free
	lastError  error         // of the latest attempt to connect; nil after a success
	failures   int           // attempts to connect that failed in a row
	retryAt    time.Duration // no attempt before that
	ban        *Ban          // nil if it is not banned
	nextCheck  time.Duration // of an idle server; 0 before the first
	checkNow   bool          // somebody does not want to wait for that
}

func newPool(r *Registry, c *Cluster, h *host, settings config.Pool) *Pool {
	n := len(r.loops.Loops())
	p := &Pool{
		ID: r.lastID.Add(1), registry: r, cluster: c, host: h, Resolved: backend.NewResolved(),
		counters: make([]backend.Counters, n), idle: make([][]*backend.Server, n),
		servers: make(map[*backend.Server]struct{}), renewed: never,
	}
	p.settings.Store(&settings)
	p.busy.Store(true)
	return p
}

// Settings are the pool's effective settings. They change at a reload; what is
// returned does not.
func (p *Pool) Settings() *config.Pool { return p.settings.Load() }

// Cluster is the pools of the same user at the same database.
func (p *Pool) Cluster() *Cluster { return p.cluster }

// Role is the role of the pool's host: config.Primary or config.Replica, or config.Auto
// while that is not known.
func (p *Pool) Role() string { return p.Settings().Role }

// Greeting is what the pool's servers report at their login, nil as long as no
// server has ever logged in.
func (p *Pool) Greeting() *backend.Greeting { return p.greeting.Load() }

// Counters are the pool's counters on a loop, for that loop only.
func (p *Pool) Counters(l *loop.Loop) *backend.Counters { return &p.counters[l.ID()] }

// Acquire returns an idle server of the waiter's loop. If there is none it
// returns nil and the waiter is in the queue: it is granted a server later, or
// refused one, unless it leaves with [Pool.Leave]. The only error is ErrRetired.
// It must be called on the waiter's loop.
func (p *Pool) Acquire(w *Waiter) (*backend.Server, error) {
	now := w.Loop.Now()
	p.mu.Lock()
	if p.retired {
		p.mu.Unlock()
		return nil, ErrRetired
	}
	if p.waiting.n == 0 && p.held == 0 {
		if s := p.popLocked(w.Loop.ID()); s != nil {
			p.mu.Unlock()
			return s, nil
		}
	}
	if !w.moved {
		w.since = now
	}
	w.moved, w.here = false, now
	p.waiting.push(w)
	first := p.waiting.n == 1
	var moved *backend.Server
	dials := 0
	if p.held == 0 {
		moved = p.popOtherLocked()
	}
	if moved == nil {
		dials = p.growLocked(now)
	}
	p.mu.Unlock()
	if moved != nil {
		p.move(moved, w.Loop)
	}
	p.dial(dials)
	if first {
		p.registry.nudge()
	}
	return nil, nil
}

// Busy reports whether a client that asked for a server now would most likely have to wait.
// It takes no lock, and so can be behind the truth for a moment.
func (p *Pool) Busy() bool { return p.busy.Load() }

// Leave takes a waiter out of the queue; false if it is not in it, because it has
// been granted a server, or refused one, or is about to be.
func (p *Pool) Leave(w *Waiter) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !w.queued {
		return false
	}
	p.waiting.remove(w)
	return true
}

func (p *Pool) popLocked(id int) *backend.Server {
	list := p.idle[id]
	if len(list) == 0 {
		return nil
	}
	s := list[len(list)-1]
	list[len(list)-1] = nil
	p.idle[id] = list[:len(list)-1]
	if len(list) == 1 {
		p.busy.Store(true)
	}
	return s
}

// popOtherLocked takes an idle server of any loop.
func (p *Pool) popOtherLocked() *backend.Server {
	for id := range p.idle {
		if s := p.popLocked(id); s != nil {
			return s
		}
	}
	return nil
}

// move takes a server that is off the idle list to another loop, and frees it
// there.
func (p *Pool) move(s *backend.Server, to *loop.Loop) {
	from := s.Loop()
	from.Post(func() {
		if !s.Idle() {
			return // it ended in the meantime
		}
		if err := from.Remove(&s.Conn); err != nil {
			s.Broken(err)
			return
		}
		to.Post(func() {
			if err := to.Add(&s.Conn); err != nil {
				s.Broken(err)
				return
			}
			s.Stats = p.Counters(to)
			p.Freed(s)
		})
	})
}

// Freed implements [backend.Owner]: the server goes to who waits longest, or onto
// the idle list.
func (p *Pool) Freed(s *backend.Server) {
	l := s.Loop()
	now := l.Now()
	p.mu.Lock()
	if p.retired || p.held&heldPause != 0 || now >= s.Expires || p.outdatedLocked(s) || len(p.servers) > p.Settings().Size {
		p.mu.Unlock()
		s.Retire()
		return
	}
	w := p.waiting.first
	switch {
	case w == nil || p.held != 0:
		p.idle[l.ID()] = append(p.idle[l.ID()], s)
		if p.busy.Load() && p.held == 0 {
			p.busy.Store(false)
		}
		p.mu.Unlock()
	case w.Loop != l:
		p.mu.Unlock()
		p.move(s, w.Loop)
	default:
		p.waiting.remove(w)
		p.grantedLocked(w, l, now)
		p.mu.Unlock()
		w.Grantee.Granted(s)
	}
}

func (p *Pool) grantedLocked(w *Waiter, l *loop.Loop, now time.Duration) {
	if w.probe {
		return
	}
	p.counters[l.ID()].WaitTime += uint64(max(now-w.since, 0))
}

// Retiring implements [backend.Owner].
func (p *Pool) Retiring(s *backend.Server) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for id, list := range p.idle {
		if i := slices.Index(list, s); i >= 0 {
			p.idle[id] = slices.Delete(list, i, i+1)
			return
		}
	}
}

// Lost implements [backend.Owner].
func (p *Pool) Lost(s *backend.Server, reason error) {
	p.mu.Lock()
	delete(p.servers, s)
	p.down.Store(p.failures > 0 && len(p.servers) == 0)
	dials := p.growLocked(loop.Now())
	p.mu.Unlock()
	p.dial(dials)
	p.registry.lost(p, s, reason)
	if errors.Is(reason, backend.ErrSilent) {
		p.suspect(reason)
	}
}

// Refused implements [backend.Owner].
func (p *Pool) Refused(code []byte) { p.registry.errors.Count(code) }

// Registry implements [backend.Owner].
func (p *Pool) Registry() *cache.Registry { return p.registry.statements }
