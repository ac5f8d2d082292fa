package frontend

import (
	"github.com/pgebb/pgebb/backend"
	"github.com/pgebb/pgebb/cache"
	"github.com/pgebb/pgebb/config"
	"github.com/pgebb/pgebb/internal/wire"
	"github.com/pgebb/pgebb/pool"
)

// This file gives a client's prepared statements other names on servers, so that a client
// finds them on whichever server it gets. What a name stands for is settled when Postgres
// has answered; a message that depends on a name whose definition in an earlier batch is
// not answered yet is therefore not passed on before it is.

const (
	// maxScratch is the largest buffer in bytes that a loop keeps for messages that
	// are put together.
	maxScratch = 128 << 10

	// releasedAtOnce is how many of a client's statements are released on its loop,
	// which stands still meanwhile; more are released by a goroutine.
	releasedAtOnce = 500
)

// statements are a client's prepared statements. A client without any has none.
type statements struct {
	names *cache.Names // nil if there is none
	// unnamed is the unnamed statement as a batch has left it that did not bind it; the
	// next batch may, on another server.
	unnamed *cache.Statement
	// parsed is the unnamed statement of the batch at hand, if that is not bound yet and
	// more of the batch is to come.
	parsed *cache.Statement

	planOf backend.Set // what plan was made of
	plan   string      // see Client.plan
}

// names reports messages that can have to do with names of statements.
func names(typ byte) bool {
	switch typ {
	case wire.Parse, wire.Bind, wire.Describe, wire.Close, wire.Sync, wire.Query, wire.FunctionCall:
		return true
	}
	return false
}

// renames reports whether the client's statements have other names on servers. In session
// mode it has its server to itself.
func (c *Client) renames() bool {
	return c.f.renaming.Load() && c.pool.Settings().Mode != config.Session
}

// renamed deals with a message that has to do with names. It returns the index behind it,
// or i if it cannot be dealt with yet, or -1 if it is to be passed on as it is.
func (c *Client) renamed(o *output, i int, typ byte, size int) (next int, failure *Error) {
	s := c.server
	if s.Skipping() {
		return -1, nil // Postgres ignores it
	}
	body := o.b[i+wire.HeaderSize : min(i+size, len(o.b))]
	switch typ {
	case wire.Sync:
		c.keepUnnamed(o)
		return -1, nil
	case wire.Query:
		return c.renamedQuery(o, i, size, body)
	case wire.Parse:
		next, failure = c.renamedParse(o, i, size, body)
		if next > i {
			c.pool.Counters(c.Loop()).ClientParses++ // one that is passed on as it is, is counted as it is sent
		}
		return next, failure
	case wire.Bind:
		return c.renamedBind(o, i, size, body)
	}
	if len(body) == 0 || body[0] != 'S' {
		return -1, nil // of a portal
	}
	name, _, ok := wire.CString(body[1:])
	if !ok {
		return -1, nil // Postgres says what is wrong with it
	}
	name = cutName(name)
	if typ == wire.Close {
		return c.renamedClose(o, i, size, name)
	}
	return c.renamedDescribe(o, i, size, name)
}

// maxName is how many bytes of a statement's name count for Postgres (NAMEDATALEN).
const maxName = 63

func cutName(name []byte) []byte { return name[:min(len(name), maxName)] }

// unsettled reports whether what a name stands for is not known yet; the client is then
// not read until it is.
func (c *Client) unsettled() bool {
	c.stalled = c.server.Unsettled()
	return c.stalled
}

func (c *Client) renamedParse(o *output, i, size int, body []byte) (int, *Error) {
	if i+size > len(o.b) {
		if int64(size) > c.f.statements.Limit() {
			return c.refuse(o, i, wire.Parse, size, errStatementMemory(size, c.f.statements.Limit()))
		}
		c.collect(o, i, size)
		return i, nil
	}
	name, text, ok := wire.CString(body)
	if ok {
		_, _, ok = wire.CString(text)
	}
	if !ok {
		return -1, nil // Postgres says what is wrong with it
	}
	said, name := name, cutName(name)
	if next, e := c.parsedSQL(o, i, size, name, text); next >= 0 {
		return next, e
	}
	if len(name) == 0 {
		// Nearly always it is bound at once, and need not be kept.
		c.dropUnnamed()
		o.unnamed = text
		c.server.HasUnnamed()
		return -1, nil
	}
	if c.unsettled() {
		return i, nil
	}
	p := c.statementsOf()
	if old := p.get(name); old != nil {
		// Postgres is to say that there is one already, behind whatever else it finds wrong.
		b := c.server.Use(o.stage(i, i+size), old)
		c.working()
		c.server.Redefined(string(said), old)
		o.staged = wire.AppendParse(b, backend.StatementName(old.ID()), string(text))
		return i + size, nil
	}
	if limit := c.f.cfg.Load().General.PreparedStatementsClientLimit; p.len() >= limit {
		return c.refuse(o, i, wire.Parse, size, errTooManyStatements(limit))
	}
	st, err := c.f.statements.Intern(text, c.plan())
	if err != nil {
		return c.refuse(o, i, wire.Parse, size, errStatementMemory(size, c.f.statements.Limit()))
	}
	key := string(name)
	c.put(key, st)
	c.working()
	o.staged = c.server.Prepare(o.stage(i, i+size), key, st)
	return i + size, nil
}

func (c *Client) renamedBind(o *output, i, size int, body []byte) (int, *Error) {
	portal, rest, ok := wire.CString(body)
	var name, values []byte
	if ok {
		name, values, ok = wire.CString(rest)
	}
	switch {
	case !ok && i+size > len(o.b):
		return 0, errProtocol("the names in a Bind are longer than %d bytes", len(body))
	case !ok:
		return -1, nil // Postgres says what is wrong with it
	}
	if len(name) == 0 {
		return c.usesUnnamed(o, i, wire.Bind, size)
	}
	if c.unsettled() {
		return i, nil
	}
	p := c.prepared
	var st *cache.Statement
	if p != nil {
		st = p.get(cutName(name))
	}
	if st == nil {
		return c.unknownName(o, i, wire.Bind, size, string(name))
	}
	c.working()
	b := c.server.Use(o.stage(i, i+wire.HeaderSize+len(body)-len(values)), st)
	renamed := backend.StatementName(st.ID())
	b = wire.AppendHeader(b, wire.Bind, size-len(name)+len(renamed))
	b = append(append(append(append(b, portal...), 0), renamed...), 0)
	o.staged = b
	c.server.Bound(string(name), st)
	if i+size > len(o.b) {
		c.left, c.drop = int32(i+size-len(o.b)), false
		return len(o.b), nil
	}
	return i + size, nil
}

func (c *Client) renamedDescribe(o *output, i, size int, name []byte) (int, *Error) {
	if len(name) == 0 {
		return c.usesUnnamed(o, i, wire.Describe, size)
	}
	if c.unsettled() {
		return i, nil
	}
	p := c.prepared
	if p == nil || p.get(name) == nil {
		return c.unknownName(o, i, wire.Describe, size, string(name))
	}
	st := p.get(name)
	c.working()
	b := c.server.Use(o.stage(i, i+size), st)
	o.staged = wire.AppendDescribeStatement(b, backend.StatementName(st.ID()))
	c.server.Sent(wire.Describe, []byte("S"))
	return i + size, nil
}

func (c *Client) renamedClose(o *output, i, size int, name []byte) (int, *Error) {
	if len(name) == 0 {
		c.dropUnnamed()
		o.unnamed = nil
		c.server.LacksUnnamed()
		return -1, nil
	}
	if c.unsettled() {
		return i, nil
	}
	p := c.prepared
	if p == nil || p.get(name) == nil {
		return c.unknownName(o, i, wire.Close, size, string(name))
	}
	key := string(name)
	st := p.names.Delete(key)
	c.dropEmpty()
	c.working()
	o.staged = c.server.Forget(o.stage(i, i+size), key, st)
	return i + size, nil
}

// collect starts to read a Parse that is larger than what is read at once. The memory for
// it grows with what arrives: its header is only a promise.
func (c *Client) collect(o *output, i, size int) {
	have := o.b[i:]
	c.collecting(append(make([]byte, 0, min(size, 2*len(have))), have...))
}

// plan is what a statement's meaning depends on besides its text: the session's settings,
// but for what is only a label.
func (c *Client) plan() string {
	p := c.statementsOf()
	if p.planOf != c.params {
		p.planOf, p.plan = c.params, c.params.Meaning().Key()
	}
	return p.plan
}

func (c *Client) statementsOf() *statements {
	if c.prepared == nil {
		c.prepared = &statements{}
		c.f.held[c.Loop().ID()].prepared++
	}
	return c.prepared
}

// get is the statement with a name, nil if there is none.
func (p *statements) get(name []byte) *cache.Statement {
	if p.names == nil {
		return nil
	}
	return p.names.Get(name)
}

// len is the number of names.
func (p *statements) len() int {
	if p.names == nil {
		return 0
	}
	return p.names.Len()
}

// put gives a statement a name that is not taken.
func (c *Client) put(name string, st *cache.Statement) {
	p := c.statementsOf()
	if p.names == nil {
		p.names = c.f.statements.NewNames()
	}
	p.names.Put(name, st)
}

// dropEmpty gives back the memory of what is empty.
func (c *Client) dropEmpty() {
	p := c.prepared
	if p.names != nil && p.names.Len() == 0 {
		p.names.Close()
		p.names = nil
	}
	if p.names == nil && p.unnamed == nil && p.parsed == nil {
		c.prepared = nil
		c.f.held[c.Loop().ID()].prepared--
	}
}

// Undefine implements [backend.Client].
func (c *Client) Undefine(name string, st *cache.Statement) {
	if name == "" {
		c.dropUnnamed()
		return
	}
	if c.prepared != nil && st != nil && c.prepared.get([]byte(name)) == st {
		c.prepared.names.Delete(name)
		c.dropEmpty()
		c.f.statements.Release(st)
	}
}

// Restore implements [backend.Client].
func (c *Client) Restore(name string, st *cache.Statement) bool {
	if c.statementsOf().get([]byte(name)) != nil {
		return false
	}
	c.put(name, st)
	return true
}

// UndefineAll implements [backend.Client]. It is also called when the client is gone.
func (c *Client) UndefineAll() {
	if c.prepared == nil {
		return
	}
	c.dropUnnamed()
	if c.prepared == nil {
		return
	}
	names := c.prepared.names
	c.prepared = nil
	c.f.held[c.Loop().ID()].prepared--
	if names.Len() > releasedAtOnce {
		go names.Close() // ends when that is done
		return
	}
	names.Close()
}

// statementPolicy is how many statements servers keep, and for how long.
func statementPolicy(cfg *config.Config) *backend.StatementPolicy {
	g := &cfg.General
	_, limit := pool.StatementLimits(cfg)
	p := backend.StatementPolicy{Limit: max(limit, 1)}
	if g.PreparedStatementsTTL != config.Off {
		p.TTL, p.Jitter = g.PreparedStatementsTTL, g.PreparedStatementsTTLJitter
	}
	return &p
}
