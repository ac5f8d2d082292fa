package pool

import (
	"time"

	"github.com/pgebb/pgebb/backend"
	"github.com/pgebb/pgebb/internal/loop"
)

// Grantee is a client that waits for a server. Its methods run on its loop.
type Grantee interface {
	// Granted gives the server that was waited for. It is idle, and lives on the
	// grantee's loop.
	Granted(s *backend.Server)
	// Refused ends the wait without a server.
	Refused(reason error)
}

// Waiter is a client's place in a pool's queue. It is embedded in the client,
// so that waiting allocates nothing.
type Waiter struct {
	Grantee Grantee    // constant
	Loop    *loop.Loop // the client's; written by it only while not queued
	// Elsewhere says that a pool of another host would do as well; written like Loop.
	Elsewhere bool

	probe      bool          // it is no client; constant
	moved      bool          // it has waited before; guarded by the pool's mu
	queued     bool          // guarded by the pool's mu
	since      time.Duration // guarded by the pool's mu
	here       time.Duration // since when at this pool; guarded by its mu
	next, prev *Waiter       // guarded by the pool's mu
}

// waiters is a queue, first come first served, from which anybody can leave at
// no cost.
type waiters struct {
	first, last *Waiter
	n           int
	probes      int // of these
}

func (q *waiters) push(w *Waiter) {
	w.prev, w.next, w.queued = q.last, nil, true
	if q.last != nil {
		q.last.next = w
	} else {
		q.first = w
	}
	q.last = w
	q.n++
	if w.probe {
		q.probes++
	}
}

func (q *waiters) remove(w *Waiter) {
	if w.prev != nil {
		w.prev.next = w.next
	} else {
		q.first = w.next
	}
	if w.next != nil {
		w.next.prev = w.prev
	} else {
		q.last = w.prev
	}
	w.prev, w.next, w.queued = nil, nil, false
	q.n--
	if w.probe {
		q.probes--
	}
}

func (q *waiters) pop() *Waiter {
	w := q.first
	if w != nil {
		q.remove(w)
	}
	return w
}
