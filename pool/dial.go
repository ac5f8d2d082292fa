package pool

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"strconv"
	"time"

	"github.com/pgebb/pgebb/backend"
	"github.com/pgebb/pgebb/config"
	"github.com/pgebb/pgebb/internal/loop"
)

const (
	// maxConnecting is how many connections of one pool are made at the same time,
	// and maxConnectingAll of all pools together: Postgres forks for each.
	maxConnecting    = 16
	maxConnectingAll = 64

	// A pool whose server cannot be reached is tried again after retryMin, doubled
	// at each failure up to retryMax, give or take a quarter.
	retryMin = 50 * time.Millisecond
	retryMax = 2 * time.Second
)

// growLocked says how many connections to make now, and counts them as under way, also
// in the registry: one that is retired waits for all that were counted before.
func (p *Pool) growLocked(now time.Duration) int {
	if p.retired || p.held&heldPause != 0 || now < p.retryAt {
		return 0
	}
	c := p.Settings()
	wanted := c.MinSize - len(p.servers) - p.connecting
	if p.held == 0 {
		wanted = max(wanted, p.waiting.n-p.connecting)
	}
	if p.held == 0 && p.down.Load() && p.cluster.Split() {
		wanted = max(wanted, 1-p.connecting) // to find out when it is back
	}
	if p.failures > 0 {
		wanted = min(wanted, 1-p.connecting) // one at a time until it works again
	}
	n := max(0, min(wanted, c.Size-len(p.servers)-p.connecting, maxConnecting-p.connecting))
	p.connecting += n
	p.registry.dials.Add(n)
	return n
}

// dial starts n connections that growLocked has counted. Each is made by a goroutine that belongs to the pool,
// not to who waits for it, and ends within connect_timeout for each attempt.
func (p *Pool) dial(n int) {
	for range n {
		go func() {
			defer p.registry.dials.Done()
			p.connect()
		}()
	}
}

func (p *Pool) connect() {
	r := p.registry
	err := p.prepare() // it may take long, and others need the place in the meantime
	select {
	case r.dialSlots <- struct{}{}:
		defer func() { <-r.dialSlots }()
	case <-r.ctx.Done():
	}
	c := p.Settings()
	target := r.Target(c)
	target.Keys = r.keysOf(c)
	started := time.Now()
	logins := uint64(0)
	target.Attempt = func() { logins++ }
	var session *backend.Session
	var until time.Time
	if err == nil {
		session, until, err = p.attempt(c, &target)
	}
	target.Attempt = nil // the server keeps the target
	l := r.loops.Pick()
	if w := p.firstWaiter(); w != nil {
		l = w.Loop
	}
	l.Post(func() {
		counters := p.Counters(l)
		counters.Connects++
		counters.ConnectTime += uint64(time.Since(started))
		counters.AuthAttempts += logins
		if err == nil {
			counters.ConnectTimes.Observe(time.Since(started))
		}
		p.connected(l, target, session, until, err)
	})
}

// attempt connects as often as connect_attempts says. until is when the server must be gone,
// zero if it can stay.
func (p *Pool) attempt(c *config.Pool, target *backend.Target) (session *backend.Session, until time.Time, err error) {
	for i := range max(c.ConnectAttempts, 1) {
		if i > 0 {
			select {
			case <-time.After(c.ConnectAttemptDelay):
			case <-p.registry.ctx.Done():
			}
		}
		ctx, cancel := p.registry.ctx, context.CancelFunc(func() {})
		if c.ConnectTimeout != config.Off {
			ctx, cancel = context.WithTimeout(ctx, c.ConnectTimeout)
		}
		session, until, err = p.registry.logIn(ctx, c, target)
		cancel()
		if err == nil || p.registry.ctx.Err() != nil {
			break
		}
	}
	if err != nil {
		return nil, until, fmt.Errorf("connecting to %s as %q: %w", target.Address, target.User, err)
	}
	return session, until, nil
}

func (p *Pool) firstWaiter() *Waiter {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.waiting.first
}

// connected ends a dial, on the loop that the server is to live on.
func (p *Pool) connected(l *loop.Loop, target backend.Target, session *backend.Session, until time.Time, err error) {
	var s *backend.Server
	if err == nil {
		s, err = backend.NewServer(l, target, session, p)
	}
	if err != nil {
		p.Counters(l).ConnectFailures++
		p.failed(l, err)
		return
	}
	s.Stats = p.Counters(l)
	s.Expires = s.Born + lifetime(p.Settings())
	if !until.IsZero() {
		s.Expires = min(s.Expires, s.Born+max(time.Until(until), 0))
	}
	first := p.greeting.Swap(s.Greeting) == nil
	p.mu.Lock()
	p.connecting--
	failures := p.failures
	p.failures, p.lastError, p.retryAt = 0, nil, 0
	p.servers[s] = struct{}{}
	p.down.Store(false)
	p.mu.Unlock()
	p.greeted(s.Greeting)
	level := slog.LevelDebug
	if first || failures > 0 { // whoever has started pgebb, or mended Postgres, wants to know
		level = slog.LevelInfo
	}
	p.registry.log.Log(context.Background(), level, "server connected", "user", target.User, "database", target.Database, "address", target.Address, "server_pid", s.PID, "failures_before", failures)
	p.Freed(s)
	// Only now is it known how many still wait.
	p.mu.Lock()
	dials := p.growLocked(l.Now())
	p.mu.Unlock()
	p.dial(dials)
}

// lifetime is how long a new server may live.
func lifetime(c *config.Pool) time.Duration {
	if c.ServerLifetime == config.Off || c.ServerLifetime == 0 {
		return config.Off / 2
	}
	d := c.ServerLifetime
	if j := int64(c.ServerLifetimeJitter); j > 0 {
		d += time.Duration(rand.Int64N(2*j+1) - j)
	}
	return max(d, 0)
}

// failed notes that a connection could not be made. What Postgres refuses for good
// ends the wait of everybody; otherwise they wait on while it is tried again.
func (p *Pool) failed(l *loop.Loop, err error) {
	p.mu.Lock()
	p.connecting--
	p.failures++
	p.lastError = err
	backoff := min(retryMin<<min(p.failures-1, 10), retryMax)
	p.retryAt = l.Now() + backoff*3/4 + rand.N(backoff/2)
	down := len(p.servers) == 0
	p.down.Store(down)
	p.mu.Unlock()
	if down {
		p.unreachable(err)
	}
	var refused []*Waiter
	p.mu.Lock()
	if final(err) && len(p.servers) == 0 {
		for w := p.waiting.pop(); w != nil; w = p.waiting.pop() {
			refused = append(refused, w)
		}
	}
	failures := p.failures
	p.mu.Unlock()
	if failures == 1 || failures%20 == 0 {
		p.registry.log.Warn("server connection failed", "user", p.Settings().User, "database", p.Settings().Database, "failures", failures, "error", err)
	}
	for _, w := range refused {
		w.refuse(err)
	}
	p.registry.nudge()
}

// refuse tells a waiter that was taken off the queue.
func (w *Waiter) refuse(err error) {
	w.Loop.Post(func() { w.Grantee.Refused(err) })
}

// final reports whether Postgres answered and trying again would not help soon.
func final(err error) bool {
	if errors.Is(err, backend.ErrCredentials) || errors.Is(err, ErrNoCredentials) {
		return true
	}
	var se *backend.ServerError
	if !errors.As(err, &se) {
		return false
	}
	switch se.Code() {
	case "53300", "57P03", "57P01", "57P02", "53400", "53200":
		return false // too many connections, starting up, shutting down, out of something
	}
	return true
}

// Target is where a pool's servers are, and as whom.
func (r *Registry) Target(c *config.Pool) backend.Target {
	t := backend.Target{
		Network: "tcp", Address: net.JoinHostPort(c.Host, strconv.Itoa(c.Port)),
		User: c.ServerUser, Database: c.ServerDatabase, Passwords: c.ServerPasswords, TCP: r.tcp, TLS: r.tls.Load(),
	}
	if len(c.Host) > 0 && c.Host[0] == '/' {
		t.Network, t.Address = "unix", fmt.Sprintf("%s/.s.PGSQL.%d", c.Host, c.Port)
	}
	set := func(name string, d time.Duration) {
		if d != config.Off && d > 0 {
			t.Params = append(t.Params, backend.Param{Name: name, Value: strconv.FormatInt(d.Milliseconds(), 10)})
		}
	}
	set("statement_timeout", c.StatementTimeout)
	set("lock_timeout", c.LockTimeout)
	if c.ReadOnly {
		t.Params = append(t.Params, backend.Param{Name: "default_transaction_read_only", Value: "on"})
	}
	return t
}
