package frontend

import (
	"errors"

	"github.com/pgebb/pgebb/backend"
	"github.com/pgebb/pgebb/config"
	"github.com/pgebb/pgebb/pool"
)

// checkout gets the client a server; false if that takes a while, and the input is
// to be held until then.
func (c *Client) checkout() bool {
	s, err := c.pool.Acquire(&c.waiter)
	if err != nil {
		c.replacePool()
		return false
	}
	if s == nil {
		c.state = stateWaiting
		c.waiting()
		return false
	}
	return c.link(s)
}

// replacePool goes on with the pool that a reload has put in the place of the
// client's, if there is one.
func (c *Client) replacePool() {
	old := c.pool.Settings()
	p := c.f.registry.Find(old.User, old.Database)
	if p == nil || p == c.pool {
		c.later(func() { c.bye(errPoolRemoved(old.User, old.Database)) })
		return
	}
	c.pool = p
	c.state = stateWaiting
	c.later(c.again)
}

// later runs f on the client's loop when what is going on now is done.
func (c *Client) later(f func()) {
	c.Loop().Post(func() {
		if c.state != stateGone && c.state != stateLeaving {
			f()
		}
	})
}

// again asks for a server once more, with the input that is held.
func (c *Client) again() {
	if c.start != nil {
		c.state = stateStarting
		if c.checkout() {
			c.linked()
		}
		return
	}
	c.state = stateIdle
	c.proceed()
}

// Granted implements [pool.Grantee].
func (c *Client) Granted(s *backend.Server) {
	if c.state != stateWaiting && c.state != stateStarting {
		c.pool.Freed(s)
		return
	}
	if c.link(s) {
		c.linked()
	}
}

// Refused implements [pool.Grantee].
func (c *Client) Refused(reason error) {
	if c.state != stateWaiting && c.state != stateStarting {
		return
	}
	if errors.Is(reason, pool.ErrRetired) {
		c.replacePool()
		return
	}
	set := c.pool.Settings()
	e, serverSaid := refusal(reason, set)
	switch {
	case serverSaid != nil:
		// What Postgres said to our login is what it would have said to the client's.
		c.totals.errors++
		c.f.logServerError(c, serverSaid)
		c.write(serverSaid.Encode())
		c.leave()
	case set.ClientRecovery == config.Recover && c.start == nil && c.held != nil:
		e.Severity = severityError
		c.rejectHeld(e)
	default:
		c.bye(e)
	}
}

// refusal turns the reason why there is no server into what the client is told:
// an error of ours, or what Postgres said.
func refusal(reason error, set *config.Pool) (*Error, *backend.ServerError) {
	var timeout *pool.TimeoutError
	if errors.As(reason, &timeout) {
		e := errCheckoutTimeout(severityFatal, set.User, set.Database, timeout.Timeout, timeout.Size)
		if timeout.Last != nil {
			e.Hint = "Is Postgres there, and does it let pgebb in?"
			e.Detail += " The last attempt to connect failed: " + timeout.Last.Error() + "."
		}
		return e, nil
	}
	var said *backend.ServerError
	if errors.As(reason, &said) {
		return nil, said
	}
	return errServerUnavailable(reason.Error()), nil
}

// link takes a server; false if it must be made ready first.
func (c *Client) link(s *backend.Server) bool {
	set := c.pool.Settings()
	s.Take(c, c.id, backend.RecoveryPolicy{
		Drain:    set.Recovery == config.Recover,
		Rollback: set.Recovery != config.Drop,
		Reset:    set.Mode == config.Session,
		Timeout:  set.RollbackTimeout,
	}, c.f.policy.Load())
	c.server, c.sent = s, false
	c.checkedOut(s)
	if c.start != nil {
		return c.try(s)
	}
	if s.Params() != c.params {
		c.adapt(s)
		return false
	}
	c.state = stateActive
	return true
}

// adapt gives the server's session the client's run-time parameters.
func (c *Client) adapt(s *backend.Server) {
	c.state = stateLinking
	err := s.Apply(c.params, func(err error) {
		if err != nil {
			c.bye(errParameters(err))
			return
		}
		c.linked()
	})
	if err != nil {
		s.Broken(err) // calls ServerLost
	}
}

// linked goes on when the server is ready for the client.
func (c *Client) linked() {
	c.state = stateActive
	c.proceed()
}

// ServerLost implements [backend.Client].
func (c *Client) ServerLost(s *backend.Server, reason error) {
	c.server = nil
	c.stalled = false
	if c.state == stateGone || c.state == stateLeaving {
		return
	}
	if !c.sent && c.retries < maxRetries {
		// Nothing has reached Postgres: another server does as well.
		c.retries++
		c.state = stateWaiting
		c.later(c.again)
		return
	}
	switch {
	case s.Failed(), s.InMessage():
		// The client has been told by Postgres itself, or cannot be told, since it would take
		// an error for the rest of a row.
		c.leave()
	case !c.sent:
		c.bye(errTooManyLost())
	default:
		c.bye(errServerLost(reason.Error()))
	}
}
