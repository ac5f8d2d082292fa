package frontend

import (
	"time"

	"github.com/pgebb/pgebb/config"
	"github.com/pgebb/pgebb/internal/loop"
	"github.com/pgebb/pgebb/internal/memory"
)

// This file is what clients feel of the limit on the memory of the process: they are not
// read when they want something new, and not let in, while there is too little.

// unread are the clients of one loop that are not read because there is too little
// memory. They belong to that loop's goroutine.
type unread struct {
	clients []*Client
	since   []time.Duration // when each was deferred, in loop.Now
}

// short reports whether the client is not to be read now. It asks for something new, and
// there is too little memory for what is under way already; the kernel keeps its request.
func (c *Client) short() bool {
	if c.server != nil || c.left > 0 || c.f.budget.Pressure()&memory.RequestsWait == 0 {
		return false
	}
	if c.HungUp() {
		return false // it leaves, and what it has becomes free
	}
	if c.unread {
		return true
	}
	c.unread = true
	d := &c.f.unread[c.Loop().ID()]
	d.clients = append(d.clients, c)
	d.since = append(d.since, c.Loop().Now())
	c.f.budget.Waits()
	return true
}

// readDeferred reads all that have been deferred.
func (f *Frontend) readDeferred(l *loop.Loop) {
	d := f.unread[l.ID()]
	f.unread[l.ID()] = unread{}
	for _, c := range d.clients {
		c.unread = false
		if c.state != stateGone && c.Loop() == l {
			c.Resume()
		}
	}
}

// turnAway has those deferred read who may be by now, and tells those why who have waited
// for as long as they would for a server.
func (f *Frontend) turnAway(l *loop.Loop, now time.Duration) {
	d := &f.unread[l.ID()]
	if f.budget.Pressure()&memory.RequestsWait == 0 {
		f.readDeferred(l)
		return
	}
	for len(d.clients) > 0 {
		c := d.clients[0]
		here := c.state != stateGone && c.Loop() == l
		timeout := c.pool.Settings().CheckoutTimeout
		if here && (timeout == config.Off || now-d.since[0] < timeout) {
			return
		}
		d.clients, d.since = d.clients[1:], d.since[1:]
		c.unread = false
		if here {
			f.budget.TurnedAway()
			c.bye(errProcessMemory(f.budget.Limit(), "The request has waited for memory for checkout_timeout ("+timeout.String()+"); nothing of it was executed."))
		}
	}
	*d = unread{}
}

// watchBudget has deferred clients read when there is memory again.
func (f *Frontend) watchBudget() {
	if f.budget == nil {
		return
	}
	f.budget.OnEase(func() {
		for _, l := range f.loops.Loops() {
			l.Post(func() { f.readDeferred(l) })
		}
	})
	f.budget.OnPressure(func() { f.statements.Reset() })
}

// admits is nil if there is memory for one more client.
func (f *Frontend) admits() *Error {
	if f.budget.Pressure()&memory.LoginsRefused == 0 {
		return nil
	}
	f.budget.TurnedAway()
	return errProcessMemory(f.budget.Limit(), "New clients are let in again when there is memory for them.")
}
