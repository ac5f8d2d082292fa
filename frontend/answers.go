package frontend

import (
	"github.com/pgebb/pgebb/backend"
	"github.com/pgebb/pgebb/config"
	"github.com/pgebb/pgebb/internal/wire"
)

// FromServer implements [backend.Client].
func (c *Client) FromServer(p []byte) { c.write(p) }

// Blocked implements [backend.Client].
func (c *Client) Blocked() bool { return c.Pending() > 0 }

// ParameterChanged implements [backend.Client].
func (c *Client) ParameterChanged(s *backend.Server) {
	c.params = s.Params()
	if c.split && c.home != nil {
		c.params = c.home.Adopt(c.params, s.Greeting)
	}
}

// ServerTakes implements [backend.Client].
func (c *Client) ServerTakes(*backend.Server) {
	if c.left == 0 {
		c.releaseIfDone()
	} else {
		c.goesOn(0)
	}
	c.Resume()
}

// Answered implements [backend.Client].
func (c *Client) Answered(s *backend.Server) {
	if c.state == stateLinking {
		c.state = stateActive // a probe has ended
		c.Resume()
	}
	c.account(s)
	c.retries = 0
	if c.pool.Settings().Mode == config.Statement && s.Status() != wire.Idle {
		e := errStatementMode()
		e.Severity = severityFatal
		c.bye(e)
		return
	}
	if s.HoldsReady() {
		if !c.eof {
			c.follow(s)
			return
		}
		s.Followed()
		c.write(appendReady(nil))
	}
	if c.eof && !s.Working() {
		c.finish(nil)
		return
	}
	c.releaseIfDone()
	if c.stalled && (c.server == nil || !c.server.Unsettled() && !(c.roams && c.server.Working())) {
		c.stalled = false
		if c.state == stateIdle || c.state == stateActive {
			c.proceed()
		}
	}
}

// releaseIfDone gives the server back when nothing is outstanding.
func (c *Client) releaseIfDone() {
	s := c.server
	if s == nil || c.left > 0 || c.state != stateActive {
		return
	}
	if s.Unsure() {
		c.state = stateLinking // nothing may be sent while the probe is out
		if err := s.Probe(); err != nil {
			s.Broken(err)
		}
		return
	}
	if !s.Settled() {
		return
	}
	if c.f.draining.Load() {
		c.bye(errShutdown())
		return
	}
	if c.pool.Settings().Mode == config.Session && c.cameWith == (backend.Set{}) {
		return
	}
	if s.LooksChanged() {
		c.look(s)
		return
	}
	if s.Pinned() || c.pool.Settings().Mode == config.Session {
		c.hear()
		return
	}
	c.server, c.begun = nil, false
	c.state = stateIdle
	s.Release(false)
	c.hear()
	c.Resume()
}
