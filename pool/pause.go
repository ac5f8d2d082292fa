package pool

import (
	"fmt"
	"time"

	"github.com/pgebb/pgebb/backend"
	"github.com/pgebb/pgebb/config"
	"github.com/pgebb/pgebb/internal/loop"
)

// hold says why a pool hands out no servers.
type hold uint8

const (
	heldPause       hold = 1 << iota // servers are closed as well
	heldMaintenance                  // they stay
)

// Scope is some pools: those of a user at a database. Empty names stand for all.
type Scope struct{ User, Database string }

// Has reports whether a pool with these settings is one of them.
func (s Scope) Has(c *config.Pool) bool {
	return (s.User == "" || s.User == c.User) && (s.Database == "" || s.Database == c.Database)
}

// ErrNoPool says that a scope has no pool.
type ErrNoPool struct{ Scope }

func (e ErrNoPool) Error() string {
	if e.User != "" {
		return fmt.Sprintf("no such pool: user %q at database %q", e.User, e.Database)
	}
	return fmt.Sprintf("no such database: %s", e.Database)
}

// in returns the pools of a scope. There need be none for everything.
func (r *Registry) in(s Scope) ([]*Pool, error) {
	var pools []*Pool
	for _, p := range r.Pools() {
		if s.Has(p.Settings()) {
			pools = append(pools, p)
		}
	}
	if len(pools) == 0 && s != (Scope{}) {
		return nil, ErrNoPool{s}
	}
	return pools, nil
}

// Pause makes clients wait from their next transaction on, for as long as it takes, and
// closes servers, as they become free. It holds for pools that a reload makes as well.
func (r *Registry) Pause(s Scope) error { return r.hold(s, heldPause) }

// Maintain makes clients wait from their next transaction on, for as long as it takes.
// It holds for pools that a reload makes as well.
func (r *Registry) Maintain(s Scope) error { return r.hold(s, heldMaintenance) }

func (r *Registry) hold(s Scope, why hold) error {
	pools, err := r.in(s)
	if err != nil {
		return err
	}
	r.mu.Lock()
	r.holds[s] |= why
	r.mu.Unlock()
	for _, p := range pools {
		p.hold(why)
	}
	return nil
}

// Resume ends what Pause has begun, and EndMaintenance what Maintain has.
func (r *Registry) Resume(s Scope) error { return r.release(s, heldPause) }

// EndMaintenance ends what Maintain has begun.
func (r *Registry) EndMaintenance(s Scope) error { return r.release(s, heldMaintenance) }

func (r *Registry) release(s Scope, why hold) error {
	pools, err := r.in(s)
	if err != nil {
		return err
	}
	r.mu.Lock()
	for held := range r.holds {
		if s == (Scope{}) || held.Database == s.Database && (s.User == "" || s.User == held.User) {
			if r.holds[held] &^= why; r.holds[held] == 0 {
				delete(r.holds, held)
			}
		}
	}
	r.mu.Unlock()
	for _, p := range pools {
		p.release(why)
	}
	return nil
}

// holdsLocked are the holds that a new pool comes under.
func (r *Registry) holdsLocked(c *config.Pool) (why hold) {
	for s, h := range r.holds {
		if s.Has(c) {
			why |= h
		}
	}
	return why
}

// Reconnect closes every server of a scope that there is now as soon as it is free.
func (r *Registry) Reconnect(s Scope) error {
	pools, err := r.in(s)
	if err != nil {
		return err
	}
	for _, p := range pools {
		p.renew()
	}
	return nil
}

// Outdated is how many servers of a scope are left that are to be closed as soon as they
// are free.
func (r *Registry) Outdated(s Scope) (n int, err error) {
	pools, err := r.in(s)
	for _, p := range pools {
		n += p.outdated()
	}
	return n, err
}

// Total is how many servers of a scope there are.
func (r *Registry) Total(s Scope) (n int, err error) {
	pools, err := r.in(s)
	for _, p := range pools {
		n += p.Status().Total
	}
	return n, err
}

// hold stops handing out servers.
func (p *Pool) hold(why hold) {
	p.mu.Lock()
	p.held |= why
	p.busy.Store(true)
	p.mu.Unlock()
	if why&heldPause != 0 {
		p.closeIdle()
	}
}

// release goes on handing out servers. Those who wait have waited for nothing so far:
// the time that they may wait begins now.
func (p *Pool) release(why hold) {
	now := loop.Now()
	p.mu.Lock()
	before := p.held
	if p.held &^= why; before == 0 || p.held != 0 {
		p.mu.Unlock()
		return
	}
	for w := p.waiting.first; w != nil; w = w.next {
		w.since = now
	}
	idle := p.takeIdleLocked()
	dials := p.growLocked(now)
	p.mu.Unlock()
	for _, s := range idle {
		s.Loop().Post(func() {
			if s.Idle() {
				p.Freed(s)
			}
		})
	}
	p.dial(dials)
	p.registry.nudge()
}

// takeIdleLocked takes all servers off the idle lists. Such a server is on its loop: the
// pool moves only those that it has taken off itself.
func (p *Pool) takeIdleLocked() (all []*backend.Server) {
	for id, list := range p.idle {
		all = append(all, list...)
		clear(list)
		p.idle[id] = list[:0]
	}
	p.busy.Store(true)
	return all
}

// closeIdle closes the servers that are free.
func (p *Pool) closeIdle() {
	p.mu.Lock()
	idle := p.takeIdleLocked()
	p.mu.Unlock()
	for _, s := range idle {
		s.Loop().Post(func() {
			if s.Idle() {
				s.Retire()
			}
		})
	}
}

// renew closes the servers that there are now as soon as they are free.
func (p *Pool) renew() {
	p.mu.Lock()
	p.renewed = loop.Now()
	p.mu.Unlock()
	p.cluster.relisten()
	p.closeIdle()
}

// outdatedLocked reports whether a server is from before the latest renewal.
func (p *Pool) outdatedLocked(s *backend.Server) bool { return s.Born <= p.renewed }

func (p *Pool) outdated() (n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for s := range p.servers {
		if p.outdatedLocked(s) {
			n++
		}
	}
	return n
}

// Outdated reports whether a server is closed as soon as it is free. Any goroutine may
// ask.
func (p *Pool) Outdated(s *backend.Server) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.outdatedLocked(s)
}

// never is a time before everything that a pool does.
const never = -time.Hour
