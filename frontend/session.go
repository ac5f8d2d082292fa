package frontend

import (
	"encoding/binary"
	"errors"

	"github.com/pgebb/pgebb/backend"
	"github.com/pgebb/pgebb/cache"
	"github.com/pgebb/pgebb/config"
	"github.com/pgebb/pgebb/internal/verdict"
	"github.com/pgebb/pgebb/internal/wire"
)

// This file follows what a client does to its session in transaction and statement mode,
// where the next transaction is on another server. Run-time parameters follow the client:
// at the end of a transaction that may have changed some Postgres is asked what they are,
// so that the rules of SET LOCAL, ROLLBACK and RESET are its own. A client that holds an
// advisory lock of its session, or is another user, keeps its server. Anything else stays
// behind, and is cleaned away before somebody else gets the server (package backend).

// Judge knows what an SQL text means.
type Judge interface {
	// Judge says what is known of an SQL text, which is not kept. It never takes long.
	Judge(sql []byte, needs verdict.Needs) verdict.Verdict
}

// needsOf says what is to be known in each mode of query_parser.
var needsOf = [...]verdict.Needs{
	config.ParserOff:                    0,
	config.ParserOn:                     verdict.State | verdict.Locks | verdict.Tree,
	config.ParserAuto:                   verdict.State | verdict.Locks,
	config.ParserSessionControl:         verdict.State,
	config.ParserSessionControlAndLocks: verdict.State | verdict.Locks,
}

// judges reports whether what the client sends is judged.
func (c *Client) judges() bool {
	set := c.pool.Settings()
	return set.Parser != config.ParserOff && set.Mode != config.Session && c.f.verdicts != nil
}

// judged judges a message, and returns the index behind it if it is refused, i if it cannot be
// dealt with yet, and otherwise -1.
func (c *Client) judged(o *output, i int, typ byte, size int, body []byte) int {
	var v verdict.Verdict
	switch typ {
	case wire.Query:
		v = c.verdictOn(body)
	case wire.Parse:
		_, text, _ := wire.CString(body)
		v = c.verdictOn(text)
	case wire.Bind:
		v = c.verdictOnBound(body)
	case wire.FunctionCall:
		v = verdictOnCall(body)
	default:
		return -1
	}
	if !v.Has(verdict.Session|verdict.Unlisten) || c.server.Skipping() {
		return -1
	}
	switch {
	case !v.Has(verdict.Listen | verdict.Unlisten):
	case c.followsListen():
		if next := c.listened(o, i, typ, size, v); next >= 0 {
			return next
		}
	case v.Has(verdict.Listen) && !v.Has(verdict.Unknown):
		next, _ := c.refuse(o, i, typ, size, errListen())
		return next
	}
	if c.f.renamingSQL.Load() && !v.Has(verdict.Several) {
		v.Flags &^= verdict.Prepare // it has a name of ours
	}
	c.server.Touch(v)
	return -1
}

// verdictOn judges the SQL text at the beginning of what there is of a message.
func (c *Client) verdictOn(b []byte) verdict.Verdict {
	sql, _, whole := wire.CString(b)
	if !whole {
		return verdict.Verdict{Flags: verdict.Any} // it is too long to be waited for
	}
	return c.f.verdicts.Judge(sql, needsOf[c.pool.Settings().Parser])
}

// verdictOnBound judges the statement that a Bind names, if that is of an earlier batch.
func (c *Client) verdictOnBound(body []byte) (v verdict.Verdict) {
	p := c.prepared
	if p == nil {
		return v
	}
	_, rest, _ := wire.CString(body)
	name, _, ok := wire.CString(rest)
	if !ok {
		return v
	}
	var st *cache.Statement
	if st = p.unnamed; len(name) > 0 {
		st = p.get(cutName(name))
	}
	if st == nil {
		return v
	}
	leaves, known := st.Judged()
	if known && !leaves {
		return v
	}
	v = c.f.verdicts.Judge(st.Text(), needsOf[c.pool.Settings().Parser])
	if !v.Has(verdict.Unknown) {
		st.SetJudged(v.Has(verdict.Session | verdict.Unlisten))
	}
	return v
}

// OIDs of functions that change the session (pg_proc.dat of Postgres).
const (
	oidSetConfig     = 2078
	oidAdvisoryFirst = 2880 // pg_advisory_lock
	oidAdvisoryLast  = 2892 // pg_advisory_unlock_all
)

// verdictOnCall judges a FunctionCall, which names the function by its OID.
func verdictOnCall(body []byte) (v verdict.Verdict) {
	if len(body) < 4 {
		return v
	}
	switch oid := binary.BigEndian.Uint32(body); {
	case oid == oidSetConfig:
		v.Flags = verdict.Write | verdict.Settings | verdict.Unnamed
	case oid >= oidAdvisoryFirst && oid <= oidAdvisoryLast:
		v.Flags = verdict.Write | verdict.Lock
	}
	return v
}

// look asks Postgres for the state of the session before the server is released.
func (c *Client) look(s *backend.Server) {
	c.state = stateLinking
	err := s.Look(c.cameWith, func(want backend.Set, err error) {
		c.state = stateActive
		switch {
		case errors.Is(err, backend.ErrParameters):
			c.bye(errSessionParameters(err))
			return
		case err != nil:
			c.bye(errSessionState(err))
			return
		}
		c.params = want
		if c.split && c.home != nil {
			c.params = c.home.Adopt(want, s.Greeting)
		}
		c.stalled = false
		if c.pool.Settings().Mode == config.Session && want != s.Params() {
			c.adapt(s, want)
			return
		}
		c.releaseIfDone()
		c.proceed()
	})
	if err != nil {
		s.Broken(err) // calls ServerLost
	}
}
