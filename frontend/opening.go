package frontend

import (
	"github.com/pgebb/pgebb/backend"
	"github.com/pgebb/pgebb/internal/wire"
)

// This file is the end of a client's login: what it asked for in its
// StartupMessage is tried on a server, once for all clients that ask for the same,
// and the client is told the session's parameters and its key.

// SQLSTATEs of parameters that a client is not turned away for.
const (
	undefinedObject    = "42704" // no such parameter
	cantChangeParamNow = "55P02" // can be set at the start of a server only
)

// begin starts the session of a client that has just been put on its loop.
func (c *Client) begin(params []backend.Param) {
	if c.f.draining.Load() {
		c.bye(errShutdown())
		return
	}
	c.pool.Counters(c.Loop()).Logins++
	if c.pool.Greeting() != nil {
		if set, refused, ok := c.pool.Resolved.Get(params); ok {
			c.params = set
			c.open(refused)
			return
		}
	}
	c.start = &opening{params}
	c.again()
}

// try gives a server the client's parameters; what it is linked for ends there.
func (c *Client) try(s *backend.Server) bool {
	c.state = stateLinking
	ready, err := s.Try(c.start.params, c.tried)
	if err != nil {
		s.Broken(err) // calls ServerLost
	} else if ready {
		c.tried(nil)
	}
	return false
}

func (c *Client) tried(refused []backend.Refusal) {
	s := c.server
	c.params = s.Params()
	c.pool.Resolved.Put(c.start.params, c.params, refused)
	c.server, c.start = nil, nil
	s.Release(false)
	c.open(refused)
}

// open tells the client that it is in, or which parameter keeps it out.
func (c *Client) open(refused []backend.Refusal) {
	var b []byte
	for _, r := range refused {
		if code := r.Code(); code != undefinedObject && code != cantChangeParamNow {
			c.totals.errors++
			c.f.logRefusal(c, r)
			c.write(refusalMessage(wire.ErrorResponse, severityFatal, r))
			c.leave()
			return
		}
		c.f.logRefusal(c, r)
		b = append(b, refusalMessage(wire.NoticeResponse, "WARNING", r)...)
	}
	c.home, c.cameWith = c.pool.Greeting(), c.params
	for _, p := range c.home.For(c.params) {
		b = wire.AppendParameterStatus(b, p.Name, p.Value)
	}
	b = wire.AppendBackendKeyData(b, c.key, c.f.keys.secret(c.key, c.id, c.minor))
	c.state = stateIdle
	c.mark = c.Loop().Now()
	c.pool.Counters(c.Loop()).LoginTimes.Observe(c.mark - c.totals.connected)
	c.write(appendReady(b))
	c.Resume()
}

// refusalMessage is what Postgres said about a start-up parameter, with the
// severity that it has for the client.
func refusalMessage(typ byte, severity string, r backend.Refusal) []byte {
	fields := []wire.Field{{Type: 'S', Value: severity}, {Type: 'V', Value: severity}}
	for _, f := range []byte("CMDHFLR") {
		fields = append(fields, wire.Field{Type: f, Value: string(wire.ErrorField(r.Body, f))})
	}
	return wire.AppendFields(nil, typ, fields...)
}
