package pool

import (
	"time"

	"github.com/pgebb/pgebb/backend"
	"github.com/pgebb/pgebb/internal/loop"
)

// Status is what a pool holds at a moment.
type Status struct {
	Waiting     int           // clients in the queue
	MaxWait     time.Duration // of the one that waits longest
	Idle, Total int           // servers
	Connecting  int           // servers that are being connected
	Failing     bool          // the latest attempt to connect has failed
	Paused      bool          // by Pause or Maintain
	Down        bool          // and there is no server
	Role        string        // of the host, see [Pool.Role]
	Ban         *Ban          // nil if the host is not banned
}

// Status returns what the pool holds now. Any goroutine may call it.
func (p *Pool) Status() Status {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := Status{
		Waiting: p.waiting.n - p.waiting.probes, Total: len(p.servers), Connecting: p.connecting, Failing: p.failures > 0,
		Down: p.down.Load(), Role: p.Role(), Ban: p.ban, Paused: p.held != 0,
	}
	if w := p.waiting.first; w != nil {
		s.MaxWait = max(loop.Now()-w.since, 0)
	}
	for _, list := range p.idle {
		s.Idle += len(list)
	}
	return s
}

// Counters returns the sum of a pool's counters over all loops, each read on its own
// loop. It must not be called on a loop.
func (r *Registry) Counters(p *Pool) backend.Counters {
	var sum backend.Counters
	for _, l := range r.loops.Loops() {
		l.Call(func() { sum.Add(p.Counters(l)) })
	}
	return sum
}

// AllCounters returns the sums of the counters of all pools. It asks each loop once. It
// must not be called on a loop.
func (r *Registry) AllCounters() map[*Pool]*backend.Counters {
	pools := r.Pools()
	sums := make(map[*Pool]*backend.Counters, len(pools))
	for _, p := range pools {
		sums[p] = new(backend.Counters)
	}
	for _, l := range r.loops.Loops() {
		l.Call(func() {
			for p, sum := range sums {
				sum.Add(p.Counters(l))
			}
		})
	}
	return sums
}
