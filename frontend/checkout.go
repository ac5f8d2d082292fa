package frontend

import (
	"errors"
	"strings"
	"time"

	"github.com/pgebb/pgebb/backend"
	"github.com/pgebb/pgebb/config"
	"github.com/pgebb/pgebb/pool"
)

// checkout gets the client a server; false if that takes a while, and the input is
// to be held until then. b is the request that the server is for.
func (c *Client) checkout(b []byte) bool {
	if cluster := c.pool.Cluster(); c.split || cluster.Split() {
		c.route(cluster, b)
	}
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
		if c.checkout(nil) {
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
	switch {
	case errors.Is(reason, pool.ErrRetired):
		c.replacePool()
		return
	case errors.Is(reason, pool.ErrMoved):
		c.elsewhere()
		return
	}
	set := c.pool.Settings()
	e, serverSaid := refusal(reason, set)
	switch {
	case serverSaid != nil:
		// What Postgres said to our login is what it would have said to the client's.
		c.totals.errors++
		c.f.logServerError(c, serverSaid)
		c.last = &Error{Severity: severityFatal, Code: serverSaid.Code(), Message: serverSaid.Message()}
		c.write(serverSaid.Encode())
		c.leave()
	case set.ClientRecovery == config.Recover && c.start == nil && c.held != nil && !c.begun:
		e.Severity = severityError
		c.rejectHeld(e)
	default:
		c.bye(e)
	}
}

// elsewhere goes on waiting, perhaps for a server of another host.
func (c *Client) elsewhere() {
	since := c.mark
	c.again()
	if c.state == stateWaiting {
		c.mark = since
	}
}

// refusal turns the reason why there is no server into what the client is told:
// an error of ours, or what Postgres said.
func refusal(reason error, set *config.Pool) (*Error, *backend.ServerError) {
	var timeout *pool.TimeoutError
	if errors.As(reason, &timeout) {
		e := errCheckoutTimeout(severityFatal, set.User, set.Database, timeout.Timeout, timeout.Size)
		if timeout.Last != nil {
			e.Detail = "The last attempt to connect to Postgres failed. " + e.Detail
			e.Hint = "Is Postgres there, and does it let pgebb in?"
			e.Private = timeout.Last.Error()
		}
		return e, nil
	}
	if errors.Is(reason, pool.ErrNoCredentials) {
		return errNoCredentials(reason.Error()), nil
	}
	var said *backend.ServerError
	if errors.As(reason, &said) {
		if strings.HasPrefix(said.Code(), "28") { // invalid authorization
			return errServerLogin(said.Code(), reason.Error()), nil
		}
		return nil, said
	}
	return errServerUnavailable(reason.Error()), nil
}

// link takes a server; false if it must be made ready first.
func (c *Client) link(s *backend.Server) bool {
	set := c.pool.Settings()
	idle := c.Loop().Now() - s.Since
	s.Take(c, c.id, backend.RecoveryPolicy{
		Drain:    set.Recovery == config.Recover,
		Rollback: set.Recovery != config.Drop,
		Reset:    set.Mode == config.Session,
		Judged:   c.judges(),
		Renamed:  c.f.renamingSQL.Load(),
		Listens:  c.followsListen(),
		Timeout:  set.RollbackTimeout,
	}, c.f.policy.Load())
	c.server, c.sent = s, false
	c.checkedOut(s)
	if idle >= set.Health.Interval {
		c.prove(s, set.Health.Timeout)
		return false
	}
	return c.ready(s)
}

// ready goes on with a server that is known to be well; false if it must be made ready.
func (c *Client) ready(s *backend.Server) bool {
	if c.start != nil {
		return c.try(s)
	}
	want := c.params
	if c.split {
		want = s.Greeting.Adopt(want, c.home)
	}
	if s.Params() != want {
		c.adapt(s, want)
		return false
	}
	return c.linkedUp(s)
}

// linkedUp goes on with a server whose session has the client's parameters.
func (c *Client) linkedUp(s *backend.Server) bool {
	if c.begun {
		c.beginDeferred(s)
		return false
	}
	c.state = stateActive
	return true
}

// prove asks a server that was idle for long for a sign of life. If there is none, the
// client gets another server.
func (c *Client) prove(s *backend.Server, timeout time.Duration) {
	c.state = stateLinking
	err := s.Check(timeout, func() {
		if c.ready(s) {
			c.linked()
		}
	})
	if err != nil {
		s.Broken(err) // calls ServerLost
	}
}

// adapt gives the server's session run-time parameters.
func (c *Client) adapt(s *backend.Server, want backend.Set) {
	c.state = stateLinking
	err := s.Apply(want, func(err error) {
		if err != nil {
			c.bye(errParameters(err))
			return
		}
		if c.linkedUp(s) {
			c.linked()
		}
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
