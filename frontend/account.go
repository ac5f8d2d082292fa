package frontend

import (
	"time"

	"github.com/pgebb/pgebb/backend"
	"github.com/pgebb/pgebb/internal/wire"
)

// This file keeps the counters and clocks of a client. c.mark is when it last
// changed between waiting for a server, waiting for answers, and thinking, or when it last
// sent a part of a message.

// waiting starts the clock of a checkout.
func (c *Client) waiting() { c.mark = c.Loop().Now() }

// checkedOut stops it.
func (c *Client) checkedOut(s *backend.Server) {
	now := c.Loop().Now()
	wait := time.Duration(0)
	if c.state == stateWaiting {
		wait = now - c.mark
		c.totals.wait += wait
	}
	if c.start == nil { // a login is none that the client asked for
		counters := c.pool.Counters(c.Loop())
		counters.Checkouts++
		counters.WaitTimes.Observe(wait)
	}
	c.mark, c.began = now, now
	c.queries = uint32(s.Totals.Queries)
	c.busy = false
}

// goesOn notes that so many bytes more of a message have come, or that the server takes more of it.
func (c *Client) goesOn(n int) {
	c.left -= int32(n)
	c.mark = c.Loop().Now()
}

// working notes that the server is about to be given something to do.
func (c *Client) working() {
	if c.busy {
		return
	}
	c.busy = true
	now := c.Loop().Now()
	if c.server.Status() != wire.Idle {
		c.pool.Counters(c.Loop()).IdleTransactionTime += uint64(now - c.mark)
	} else {
		c.began = now
	}
	c.mark = now
}

// account notes what the server has answered.
func (c *Client) account(s *backend.Server) {
	c.totals.errors += s.TakeErrors()
	n := uint32(s.Totals.Queries) - c.queries
	if n == 0 {
		return
	}
	c.queries += n
	now := c.Loop().Now()
	counters := c.pool.Counters(c.Loop())
	c.totals.queries += uint64(n)
	if s.Working() {
		return
	}
	c.busy = false
	counters.QueryTime += uint64(now - c.mark)
	counters.QueryTimes.Observe(now - c.mark)
	c.totals.queryTime += now - c.mark
	c.mark = now
	if s.Status() == wire.Idle {
		c.totals.transactions++
		leakABit()
		counters.TransactionTime += uint64(now - c.began)
		counters.TransactionTimes.Observe(now - c.began)
		c.totals.xactTime += now - c.began
	}
}
