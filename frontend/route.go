package frontend

import (
	"bytes"
	"strings"

	"github.com/pgebb/pgebb/backend"
	"github.com/pgebb/pgebb/config"
	"github.com/pgebb/pgebb/internal/verdict"
	"github.com/pgebb/pgebb/internal/wire"
	"github.com/pgebb/pgebb/pool"
)

// This file chooses the host for a client's request where its database has several. The
// choice is made when the client gets a server, and holds until it gives the server back;
// a client that has sent a read to a replica and sends something else behind it, without
// waiting for the answer, is not read on before it has the answer.

const (
	// routedPiece is how many bytes are read of a client that will have to wait for a
	// server, if the host depends on them.
	routedPiece = 16 << 10

	// routedWhole is the size in bytes up to which a message is waited for to its end,
	// because the host depends on it. A statement that is larger goes to the primary.
	routedWhole = 32 << 10

	// maxParsed is how many statements of a batch are remembered by name.
	maxParsed = 8
)

// route chooses the pool for a request, of which b is what there is.
func (c *Client) route(cluster *pool.Cluster, b []byte) {
	c.split, c.roams, c.waiter.Elsewhere = cluster.Split(), false, true
	var p *pool.Pool
	if c.start != nil {
		p = cluster.Home()
	} else {
		need := c.need(b)
		p = cluster.Choose(need)
		c.waiter.Elsewhere = need != pool.Write
		c.roams = c.waiter.Elsewhere && p != nil && p.Role() != config.Primary && c.pool.Settings().Mode != config.Session
	}
	if p == nil || p == c.pool {
		return
	}
	// What was read of the request was counted before it was known whose it is.
	c.pool.Counters(c.Loop()).Received -= uint64(len(b))
	p.Counters(c.Loop()).Received += uint64(len(b))
	c.pool = p
}

// awaited reports whether a message whose beginning is there is to be waited for to its
// end, because it decides on the host, or on what is left in the session.
func (c *Client) awaited(typ byte, size int) bool {
	if typ != wire.Query && typ != wire.Parse || size > routedWhole {
		return false
	}
	if c.server != nil {
		return c.roams || c.judges()
	}
	// Who will have to wait for a server is not read so far before it has one.
	return c.pool.Cluster().Split() || c.judges() && !c.pool.Busy()
}

// leaves reports whether a client whose reads went to a replica begins something that the
// replica is not for. It is then not read before everything is answered, after which it
// either has no server any more or is in a transaction, and stays.
func (c *Client) leaves(typ byte, b []byte) bool {
	switch typ {
	case wire.Query, wire.Parse, wire.Bind, wire.Describe, wire.Close, wire.FunctionCall:
	default:
		return false
	}
	if !c.server.Working() || !c.server.BetweenBatches() || c.need(b) != pool.Write {
		return false
	}
	c.stalled = true
	return true
}

// need is what a request needs of a host. Of the extended protocol it is looked at up to
// its Sync: if that is not there yet, who knows what comes.
func (c *Client) need(b []byte) pool.Access {
	if c.pool.Settings().Mode == config.Session {
		// What the session will need is not known, so only its own wish counts.
		if c.role == pool.Replica {
			return pool.Replica
		}
		return pool.Write
	}
	r := request{c: c}
	for len(b) >= wire.HeaderSize {
		typ, size := wire.Header(b)
		if !wire.Legal(size) || size > len(b) {
			break
		}
		if r.message(typ, b[wire.HeaderSize:size]) {
			return r.result()
		}
		b = b[size:]
	}
	r.add(pool.Write)
	return r.result()
}

// request is what is known of a request.
type request struct {
	c       *Client
	access  pool.Access       // what the statements need that were found
	hint    pool.Access       // what the first comment asks for that asks for anything
	begun   bool              // a statement was found
	names   [maxParsed][]byte // of the statements that the batch has parsed
	parsed  int
	unnamed bool // among them the one without a name
}

// message takes in one message and reports whether it was the last that matters.
func (r *request) message(typ byte, body []byte) (last bool) {
	switch typ {
	case wire.Query:
		sql, _, _ := wire.CString(body)
		r.statement(sql)
		return true
	case wire.Parse:
		name, text, ok := wire.CString(body)
		if !ok || r.parsed == maxParsed {
			r.add(pool.Write)
			return true
		}
		sql, _, _ := wire.CString(text)
		r.statement(sql)
		r.unnamed = r.unnamed || len(name) == 0
		r.names[r.parsed] = cutName(name)
		r.parsed++
	case wire.Bind:
		_, rest, _ := wire.CString(body)
		name, _, ok := wire.CString(rest)
		r.bound(cutName(name), ok)
	case wire.Sync:
		return true
	case wire.Flush, wire.FunctionCall:
		r.add(pool.Write)
		return true
	}
	return false
}

// bound takes in the use of a statement that was parsed in this batch or in an earlier one.
func (r *request) bound(name []byte, ok bool) {
	for _, n := range r.names[:r.parsed] {
		if bytes.Equal(n, name) {
			return
		}
	}
	p := r.c.prepared
	if !ok || p == nil {
		r.add(pool.Write)
		return
	}
	st := p.unnamed
	if len(name) > 0 {
		st = p.get(name)
	}
	if st == nil {
		r.add(pool.Write)
		return
	}
	r.statement(st.Text())
}

// statement takes in an SQL text.
func (r *request) statement(sql []byte) {
	c := r.c
	if !r.begun {
		r.begun = true
		if role, ok := setRole(sql); ok {
			c.role = role
		}
	}
	if mode := c.pool.Settings().Parser; c.f.verdicts == nil || mode != config.ParserOn && mode != config.ParserAuto {
		r.add(pool.Write)
		return
	}
	v := c.f.verdicts.Judge(sql, verdict.Routing)
	switch {
	case r.hint != pool.Any:
	case v.Has(verdict.Primary):
		r.hint = pool.Write
	case v.Has(verdict.Replica):
		r.hint = pool.Replica
	}
	r.add(c.access(v, sql))
}

// notReads are the flags of what is not a read.
const notReads = verdict.Write | verdict.Unknown | verdict.Session | verdict.Unlisten | verdict.Discard | verdict.Notify | verdict.Execute | verdict.Show

// access is what a statement needs of a host.
func (c *Client) access(v verdict.Verdict, sql []byte) pool.Access {
	switch {
	case v.Has(notReads):
		return pool.Write
	case v.Has(verdict.Begin):
		return c.accessOfBegin(v, sql)
	case v.Has(verdict.End | verdict.Savepoint):
		return pool.Any // it belongs to a transaction that has begun
	case c.serializable():
		return pool.Write
	}
	return pool.Read
}

// accessOfBegin is what the beginning of a transaction needs.
func (c *Client) accessOfBegin(v verdict.Verdict, sql []byte) pool.Access {
	switch {
	case v.Has(verdict.ReadWrite) || c.serializable() || bytes.Contains(bytes.ToLower(sql), []byte("serializable")):
		return pool.Write
	case v.Has(verdict.ReadOnly) || c.pool.Settings().ReadOnly:
		return pool.Read
	case c.f.aggressive.Load() && plainBegin(sql) != "":
		return pool.Any
	}
	return pool.Write
}

// serializable reports whether the client's transactions are, without saying so: a replica
// does not do that.
func (c *Client) serializable() bool {
	return c.params != (backend.Set{}) && strings.Contains(strings.ToLower(c.params.Key()), "default_transaction_isolation\x00serializable")
}

// add combines what two statements need.
func (r *request) add(a pool.Access) {
	if a == pool.Write || r.access == pool.Any {
		r.access = a
	}
}

// result is what all that was found needs; a wish is granted whatever that is.
func (r *request) result() pool.Access {
	switch {
	case r.hint != pool.Any:
		return r.hint
	case r.c.role != pool.Any:
		return r.c.role
	}
	return r.access
}
