package pool

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/pgebb/pgebb/backend"
	"github.com/pgebb/pgebb/config"
	"github.com/pgebb/pgebb/internal/loop"
)

// This file is the goroutine of a PubSub, which has its connection: it makes it, keeps what
// Postgres listens to the same as what clients listen to, and makes it anew when it is lost.

const (
	// lingers is how long the connection is kept when nobody listens any more.
	lingers = 5 * time.Second

	// listenTimeout is how long Postgres may take for a LISTEN.
	listenTimeout = 5 * time.Second
)

// errRenewed is the reason for the end of a connection that is replaced.
var errRenewed = errors.New("replaced, because the configuration or the primary has changed, or by RECONNECT")

// errUnneeded is that of one that nobody needs.
var errUnneeded = errors.New("nobody listens any more")

// run connects as long as there is a reason to.
func (h *PubSub) run() {
	for h.needed() {
		p, l, renewed, err := h.connect()
		if err != nil {
			h.failed(err)
			continue
		}
		log := h.cluster.registry.log.With("user", h.user, "database", h.database, "server_pid", l.PID)
		log.Info("listening for clients")
		err = h.serve(p, l, renewed)
		l.Close()
		channels := h.lost(err)
		switch {
		case errors.Is(err, errUnneeded):
			log.Info("not listening any more, since no client does")
		case channels > 0:
			log.Warn("the connection that listens was lost: until there is another, clients miss what is notified",
				"channels", channels, "reason", err)
		}
	}
}

// needed reports whether the connection is needed; otherwise the goroutine ends.
func (h *PubSub) needed() bool {
	ctx := h.cluster.registry.ctx
	h.mu.Lock()
	defer h.mu.Unlock()
	for name, c := range h.channels {
		if len(c.subscribers) == 0 {
			delete(h.channels, name)
		}
	}
	if ctx.Err() != nil || h.ended || len(h.channels) == 0 && len(h.ready) == 0 {
		h.running = false
		return false
	}
	return true
}

// connect waits until it is time, and connects.
func (h *PubSub) connect() (p *Pool, l *backend.Listener, renewed int, err error) {
	r := h.cluster.registry
	for {
		h.mu.Lock()
		renewed = h.renewed
		wait, ended := h.retryAt-loop.Now(), h.ended
		h.mu.Unlock()
		if ended || wait <= 0 {
			break
		}
		select {
		case <-h.wake:
		case <-time.After(wait):
		case <-r.ctx.Done():
			return nil, nil, 0, r.ctx.Err()
		}
	}
	if p, err = h.cluster.primary(); err != nil {
		return nil, nil, 0, err
	}
	if err := p.prepare(); err != nil {
		return nil, nil, 0, err
	}
	select {
	case r.dialSlots <- struct{}{}:
		defer func() { <-r.dialSlots }()
	case <-r.ctx.Done():
		return nil, nil, 0, r.ctx.Err()
	}
	c := p.Settings()
	target := r.Target(c)
	target.Keys = r.keysOf(c)
	target.Params = append(target.Params, backend.Param{Name: "application_name", Value: "pgebb LISTEN"})
	session, _, err := p.attempt(c, &target)
	if err != nil {
		return nil, nil, 0, err
	}
	return p, backend.NewListener(session), renewed, nil
}

// failed notes that there is no connection, and tells who waits for one.
func (h *PubSub) failed(err error) {
	h.mu.Lock()
	h.failures++
	backoff := min(retryMin<<min(h.failures-1, 10), retryMax)
	h.retryAt = loop.Now() + backoff*3/4 + rand.N(backoff/2)
	n, channels := h.failures, len(h.channels)
	waiting := h.takeWaitingLocked()
	h.mu.Unlock()
	if n == 1 || n%20 == 0 {
		h.cluster.registry.log.Warn("the connection that listens cannot be made", "user", h.user, "database", h.database, "channels", channels, "failures", n, "error", err)
	}
	for _, done := range waiting {
		done(err)
	}
}

// lost notes that the connection has ended, and returns how many channels had listeners.
func (h *PubSub) lost(err error) (listened int) {
	h.mu.Lock()
	was := h.there
	h.there = false
	if !errors.Is(err, errRenewed) {
		h.retryAt = loop.Now() + retryMin // it may be lost each time
	}
	for _, c := range h.channels {
		c.listening = false
		if len(c.subscribers) > 0 {
			listened++
		}
	}
	h.mu.Unlock()
	if !was && !errors.Is(err, errRenewed) {
		h.failed(err) // it has never listened
		return listened
	}
	// Who waits for a channel waits for the next connection. Marks are lost.
	h.mu.Lock()
	var marks []func(error)
	for payload, w := range h.awaited {
		marks = append(marks, w.done)
		delete(h.awaited, payload)
	}
	h.mu.Unlock()
	for _, done := range marks {
		done(errConnectionLost)
	}
	return listened
}

// batch is what is sent to Postgres in one piece.
type batch struct {
	sql                string
	listens, unlistens []*channel
}

// nextLocked is what must be sent, nil if nothing. first asks for everything.
func (h *PubSub) nextLocked(first bool) *batch {
	var b batch
	var sql strings.Builder
	if first {
		sql.WriteString(backend.ListenSQL(h.marks) + ";")
		h.changed = make(map[string]*channel)
		for name, c := range h.channels {
			h.changed[name] = c
		}
	}
	for name, c := range h.changed {
		switch wanted := len(c.subscribers) > 0; {
		case wanted && !c.listening:
			sql.WriteString(backend.ListenSQL(name) + ";")
			b.listens = append(b.listens, c)
		case !wanted && c.listening:
			sql.WriteString(backend.UnlistenSQL(name) + ";")
			b.unlistens = append(b.unlistens, c)
		case !wanted:
			delete(h.channels, name)
		}
	}
	clear(h.changed)
	if b.sql = sql.String(); b.sql == "" {
		return nil
	}
	return &b
}

// answeredLocked takes in that Postgres has done what was sent, and returns who is to be told.
func (h *PubSub) answeredLocked(b *batch) (told []func(error)) {
	for _, c := range b.listens {
		c.listening = true
		if len(c.subscribers) == 0 {
			h.changed[c.name] = c
		}
		for _, w := range c.waiting {
			if w.left--; w.left == 0 {
				told = append(told, w.done)
			}
		}
		c.waiting = nil
	}
	for _, c := range b.unlistens {
		c.listening = false
		h.changed[c.name] = c
	}
	return told
}

// serve does what is to be done at a connection until that ends, and says why it has.
func (h *PubSub) serve(p *Pool, l *backend.Listener, renewed int) error {
	answers, ended := make(chan error, 1), make(chan error, 1)
	reading := make(chan struct{})
	go func() { // ends with the connection, which is closed before serve returns
		defer close(reading)
		ended <- l.Read(h.heard, func(err error) {
			select {
			case answers <- err:
			default: // nobody asked
			}
		})
	}()
	defer func() { l.Close(); <-reading }()
	ctx := h.cluster.registry.ctx
	for first := true; ; first = false {
		h.mu.Lock()
		b := h.nextLocked(first)
		h.mu.Unlock()
		if b != nil {
			if err := h.exchange(ctx, l, b.sql, answers, ended); err != nil {
				return err
			}
			h.done(l, b)
		}
		h.mu.Lock()
		stale, idle := h.renewed != renewed || h.ended, len(h.channels) == 0 && len(h.ready) == 0
		more := len(h.changed) > 0
		h.mu.Unlock()
		switch {
		case stale:
			return errRenewed
		case more:
			continue
		}
		patience := checkPeriod(p.Settings())
		if idle {
			patience = lingers
		}
		select {
		case <-h.wake:
		case err := <-ended:
			return err
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(patience):
			if idle {
				return errUnneeded
			}
			if err := h.exchange(ctx, l, "", answers, ended); err != nil { // a sign of life
				return err
			}
		}
	}
}

// done notes that a batch is answered, and tells who waits.
func (h *PubSub) done(l *backend.Listener, b *batch) {
	h.mu.Lock()
	told := h.answeredLocked(b)
	h.there, h.encoding, h.failures, h.retryAt = true, l.Encoding, 0, 0
	ready := h.ready
	h.ready = nil
	h.mu.Unlock()
	for _, done := range append(told, ready...) {
		done(nil)
	}
}

// checkPeriod is how often Postgres is asked for a sign of life.
func checkPeriod(c *config.Pool) time.Duration {
	d := c.Health.IdleInterval
	if d == 0 || d == config.Off {
		return longestPeriod
	}
	return min(max(d, time.Second), longestPeriod)
}

// exchange sends a text and waits for the answer.
func (h *PubSub) exchange(ctx context.Context, l *backend.Listener, sql string, answers, ended <-chan error) error {
	if err := l.Send(sql, listenTimeout); err != nil {
		return err
	}
	timer := time.NewTimer(listenTimeout)
	defer timer.Stop()
	select {
	case err := <-answers:
		if err != nil {
			return fmt.Errorf("listening: %w", err)
		}
		return nil
	case err := <-ended:
		return err
	case <-timer.C:
		return fmt.Errorf("no answer to LISTEN within %v", listenTimeout)
	case <-ctx.Done():
		return ctx.Err()
	}
}
