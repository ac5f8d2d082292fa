package pool

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/pgebb/pgebb/backend"
	"github.com/pgebb/pgebb/config"
	"github.com/pgebb/pgebb/internal/loop"
)

// failoverPeriod is how often hosts are asked for their role while there is no primary, or
// none that can be reached.
const failoverPeriod = 250 * time.Millisecond

// Periods of checks are at least and at most so long, whatever the configuration says: a
// period of 0 would keep a processor busy.
const (
	shortestPeriod = 10 * time.Millisecond
	longestPeriod  = 24 * time.Hour
)

// positionSQL asks a host what it is and where in the WAL it stands. Names are qualified
// because search_path is whatever the last client has set.
const positionSQL = `SELECT r, CASE WHEN r THEN 0 ELSE ('x' || pg_catalog.substr(pg_catalog.pg_walfile_name(pg_catalog.pg_current_wal_lsn()), 1, 8))::pg_catalog.bit(32)::pg_catalog.int8 END, ` +
	`CASE WHEN r THEN pg_catalog.pg_last_wal_replay_lsn() ELSE pg_catalog.pg_current_wal_lsn() END FROM pg_catalog.pg_is_in_recovery() AS r`

// probe is a place in a pool's queue of who wants to ask a question of the pool's own. It
// belongs to its loop.
type probe struct {
	pool    *Pool
	waiter  Waiter
	timeout time.Duration
	sql     string
	done    func(row []string, err error) // called once
	over    bool
}

// ask asks a question on a server of the pool, one that is idle or one that becomes free
// within the timeout. done is called on a loop.
func (p *Pool) ask(sql string, timeout time.Duration, done func(row []string, err error)) {
	l := p.registry.loops.Pick()
	l.Post(func() {
		q := &probe{pool: p, timeout: timeout, sql: sql, done: done}
		q.waiter = Waiter{Grantee: q, Loop: l, probe: true}
		s, err := p.Acquire(&q.waiter)
		switch {
		case err != nil:
			q.end(nil, err)
		case s != nil:
			q.Granted(s)
		default:
			time.AfterFunc(timeout, func() {
				l.Post(func() {
					if p.Leave(&q.waiter) {
						q.end(nil, fmt.Errorf("no server became free within %v", timeout))
					}
				})
			})
		}
	})
}

// Granted implements [Grantee].
func (q *probe) Granted(s *backend.Server) { s.Inspect(q.sql, q.timeout, q.end) }

// Refused implements [Grantee].
func (q *probe) Refused(reason error) { q.end(nil, reason) }

func (q *probe) end(row []string, err error) {
	if !q.over {
		q.over = true
		q.done(row, err)
	}
}

// checkIdle asks the server that is idle for longest for a sign of life, every
// idle_healthcheck_interval, and returns when it is time again. It runs in the registry's
// goroutine.
func (p *Pool) checkIdle(now time.Duration) (next time.Duration) {
	c := &p.Settings().Health
	off := c.IdleInterval == 0 || c.IdleInterval == config.Off
	p.mu.Lock()
	if p.nextCheck == 0 {
		p.nextCheck = p.registry.started + c.IdleDelay
	}
	if !p.checkNow && (off || now < p.nextCheck) {
		defer p.mu.Unlock()
		if off {
			return config.Off
		}
		return p.nextCheck
	}
	interval := min(max(c.IdleInterval, shortestPeriod), longestPeriod)
	p.nextCheck, p.checkNow = now+interval, false
	if off {
		p.nextCheck = 0 // should it be turned on later
	}
	s := p.popOldestLocked()
	p.mu.Unlock()
	if s != nil {
		s.Loop().Post(func() {
			if s.Idle() {
				s.Inspect("", c.Timeout, func([]string, error) {}) // Lost acts on a failure
			}
		})
	}
	return now + interval
}

// popOldestLocked takes the server off the idle lists that is idle for longest.
func (p *Pool) popOldestLocked() *backend.Server {
	oldest := -1
	for id, list := range p.idle {
		if len(list) > 0 && (oldest < 0 || list[0].Since < p.idle[oldest][0].Since) {
			oldest = id
		}
	}
	if oldest < 0 {
		return nil
	}
	list := p.idle[oldest]
	s := list[0]
	p.idle[oldest] = slices.Delete(list, 0, 1)
	if len(list) == 1 {
		p.busy.Store(true)
	}
	return s
}

// CheckNow asks for a sign of life at once instead of when it is due.
func (p *Pool) CheckNow() {
	p.mu.Lock()
	p.checkNow = true
	p.mu.Unlock()
	p.registry.nudge()
}

// suspect is called when a server has not given a sign of life: the others that are idle
// are closed as well, since a host that is gone is gone for all of them, and a replica is
// banned.
func (p *Pool) suspect(reason error) {
	p.banFor(reason.Error(), false)
	p.eachServer(func(s *backend.Server) {
		if s.Idle() {
			s.Retire()
		}
	})
}

// unreachable is called when a host did not let a connection be made and there is none.
func (p *Pool) unreachable(reason error) {
	if !p.cluster.Split() {
		return
	}
	p.banFor(reason.Error(), false)
	if p.cluster.others(p) {
		p.moveWaiters(false)
	}
	if p.Settings().FindsRole() {
		p.registry.hurry(p.host)
	}
}

// giveUp looks whether clients wait for a host that lets nobody in and does not say no
// either, as one does that is cut off. After half of checkout_timeout it counts as one that
// cannot be reached. It runs in the registry's goroutine.
func (p *Pool) giveUp(now time.Duration) {
	if p.down.Load() || !p.cluster.Split() {
		return
	}
	patience := p.Settings().CheckoutTimeout / 2
	p.mu.Lock()
	w := p.waiting.first
	stuck := w != nil && now-w.here >= patience && len(p.servers) == 0 && p.connecting > 0
	if stuck {
		p.down.Store(true)
	}
	p.mu.Unlock()
	if stuck {
		p.unreachable(fmt.Errorf("no connection could be made within %v", patience))
	}
}

// hurry asks the hosts of a database for their roles at once.
func (r *Registry) hurry(h *host) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, o := range r.siblingsLocked(h.key.database) {
		if o.auto {
			o.due = 0
		}
	}
	r.nudge()
}

// checkHosts asks hosts for their role and position when it is time, and returns when it
// is time again. It runs in the registry's goroutine.
func (r *Registry) checkHosts(now time.Duration) (next time.Duration) {
	next = now + calmPeriod
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, h := range r.hosts {
		interval := r.intervalLocked(h, now)
		if interval == config.Off || h.checking {
			continue
		}
		if now < h.due && h.due-now <= interval {
			next = min(next, h.due)
			continue
		}
		h.due, h.checking = now+interval, true
		next = min(next, h.due)
		p := h.pools[h.turn%len(h.pools)]
		p.ask(positionSQL, r.general.LSNCheckTimeout, func(row []string, err error) { r.answered(h, p, row, err) })
	}
	return next
}

// intervalLocked is how often a host is to be asked, config.Off for never.
func (r *Registry) intervalLocked(h *host, now time.Duration) time.Duration {
	if len(h.pools) == 0 || !h.pools[0].cluster.Split() {
		return config.Off
	}
	g := r.general
	interval := g.LSNCheckInterval
	if r.lag != nil {
		interval = min(interval, r.lag.CheckInterval)
	}
	interval = min(max(interval, shortestPeriod), longestPeriod)
	switch primary := h.pools[0].cluster.members.Load().primary; {
	case h.auto && (primary == nil || primary.down.Load()):
		return min(interval, failoverPeriod)
	case !h.auto && r.lag == nil && (g.LSNCheckDelay == config.Off || now < r.started+g.LSNCheckDelay):
		return config.Off
	}
	return interval
}

// answered takes the answer of a host. It runs on a loop.
func (r *Registry) answered(h *host, p *Pool, row []string, err error) {
	said, wrong := readPosition(row)
	if err == nil {
		err = wrong
	}
	if err == nil {
		r.heard(h, said)
	} else {
		r.log.Debug("host does not say what it is", "database", h.key.database, "host", h.key.host, "port", h.key.port, "error", err)
	}
	r.mu.Lock()
	h.checking = false
	if err != nil {
		h.turn++ // another user may be able to ask
	}
	r.mu.Unlock()
}

// readPosition reads the answer to positionSQL.
func readPosition(row []string) (position, error) {
	if len(row) != 3 {
		return position{}, fmt.Errorf("%d columns", len(row))
	}
	timeline, err := strconv.ParseUint(row[1], 10, 32)
	if err != nil {
		return position{}, fmt.Errorf("reading a timeline: %w", err)
	}
	s := position{known: true, recovering: row[0] == "t", timeline: uint32(timeline), at: loop.Now()}
	if high, low, ok := strings.Cut(row[2], "/"); ok {
		h, err1 := strconv.ParseUint(high, 16, 32)
		l, err2 := strconv.ParseUint(low, 16, 32)
		if err := errors.Join(err1, err2); err != nil {
			return position{}, fmt.Errorf("reading a position in the WAL: %w", err)
		}
		s.lsn = h<<32 | l
	}
	return s, nil
}

// greeted learns a host's role from a login. Postgres reports it from version 14 on.
func (p *Pool) greeted(g *backend.Greeting) {
	if !p.Settings().FindsRole() || !p.cluster.Split() {
		return
	}
	for _, param := range g.Params {
		if param.Name == "in_hot_standby" {
			p.registry.heard(p.host, position{known: true, recovering: param.Value == "on", at: loop.Now()})
		}
	}
}
