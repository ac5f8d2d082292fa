package frontend

import (
	"time"

	"github.com/pgebb/pgebb/config"
	"github.com/pgebb/pgebb/internal/loop"
	"github.com/pgebb/pgebb/internal/wire"
)

// sweepPeriod is how often clients are looked at: a tenth of the shortest timeout
// there is, so that none is late by more than that.
func sweepPeriod(cfg *config.Config) time.Duration {
	period := time.Second
	g := &cfg.General
	for _, t := range []time.Duration{g.QueryTimeout, g.ClientIdleTimeout, g.ClientIdleInTransactionTimeout} {
		if t != config.Off && t > 0 {
			period = min(period, max(t/10, 5*time.Millisecond))
		}
	}
	return period
}

// sweep closes the clients of a loop that have exceeded a timeout. Without
// timeouts there is nothing to look at, but for those that wait for memory.
func (f *Frontend) sweep(l *loop.Loop, now time.Duration) {
	if f.unread[l.ID()].clients != nil {
		f.turnAway(l, now)
	}
	f.coroutines[l.ID()].sweep()
	g := &f.cfg.Load().General
	if g.QueryTimeout == config.Off && g.ClientIdleTimeout == config.Off && g.ClientIdleInTransactionTimeout == config.Off {
		return
	}
	l.Each(func(h loop.Handler) {
		if c, ok := h.(*Client); ok {
			c.checkTime(now)
		}
	})
}

// checkTime closes the client if it has exceeded a timeout.
func (c *Client) checkTime(now time.Duration) {
	set := c.pool.Settings()
	over := func(t time.Duration) bool { return t != config.Off && t > 0 && now-c.mark >= t }
	switch {
	case c.state == stateIdle && c.begun:
		if over(set.ClientIdleInTransactionTimeout) {
			c.bye(errClientIdleInTransaction(set.ClientIdleInTransactionTimeout))
		}
	case c.silent() && over(set.ClientIdleInTransactionTimeout):
		c.bye(errClientIdleInMessage(set.ClientIdleInTransactionTimeout))
	case c.state == stateIdle || c.state == stateActive && !c.busy && c.server.Status() == wire.Idle:
		if over(set.ClientIdleTimeout) {
			c.bye(errClientIdle(set.ClientIdleTimeout))
		}
	case c.state != stateActive:
	case c.server.Working():
		if over(set.QueryTimeout) {
			c.expel(errQueryTimeout(set.QueryTimeout))
		}
	case over(set.ClientIdleInTransactionTimeout):
		c.bye(errClientIdleInTransaction(set.ClientIdleInTransactionTimeout))
	}
}

// silent reports whether the client has a server that waits for nothing but the rest of the
// client's message.
func (c *Client) silent() bool {
	return c.state == stateActive && c.cut() && c.server.Pending() == 0 && !c.stalled
}
