package frontend

import (
	"unicode/utf8"

	"github.com/pgebb/pgebb/backend"
	"github.com/pgebb/pgebb/cache"
	"github.com/pgebb/pgebb/internal/verdict"
	"github.com/pgebb/pgebb/internal/wire"
)

// This file gives statements other names in PREPARE, EXECUTE and DEALLOCATE, and refuses
// messages in their turn.

// renamedQuery looks for a command that names a statement of the client's. Any Query drops
// the unnamed statement.
func (c *Client) renamedQuery(o *output, i, size int, body []byte) (int, *Error) {
	c.dropUnnamed()
	o.unnamed = nil
	c.server.LacksUnnamed()
	sql, _, whole := wire.CString(body)
	if p, ok := c.f.classifier.Prepared(sql); ok {
		if !c.f.renamingSQL.Load() {
			return c.unknownName(o, i, wire.Query, size, p.Name)
		}
		return c.renamedSQL(o, i, size, sql, whole, p)
	}
	if !whole {
		return -1, nil
	}
	name, all, ok := c.f.classifier.Deallocates(sql)
	if !ok {
		return -1, nil
	}
	if c.unsettled() {
		return i, nil
	}
	var st *cache.Statement
	if c.prepared != nil && !all {
		st = c.prepared.get([]byte(name))
	}
	if st == nil {
		if backend.IsStatementName(name) {
			return c.unknownName(o, i, wire.Query, size, name)
		}
		c.server.Deallocating("", nil)
		return -1, nil
	}
	c.working()
	query := `DEALLOCATE "` + backend.StatementName(st.ID()) + `"`
	o.staged = c.server.QuerySQL(o.stage(i, i+size), name, st, query, backend.Rename{})
	c.server.Deallocating(name, st)
	return i + size, nil
}

// renamedSQL deals with a PREPARE or an EXECUTE.
func (c *Client) renamedSQL(o *output, i, size int, sql []byte, whole bool, p Prepared) (int, *Error) {
	if !whole {
		if i+size <= len(o.b) {
			return -1, nil // it is malformed, as Postgres will say
		}
		if int64(size) > c.f.statements.Limit() {
			return c.refuse(o, i, wire.Query, size, errStatementMemory(size, c.f.statements.Limit()))
		}
		c.collect(o, i, size)
		return i, nil
	}
	if c.unsettled() {
		return i, nil
	}
	var st *cache.Statement
	if c.prepared != nil {
		st = c.prepared.get([]byte(p.Name))
	}
	isNew := false
	switch {
	case st != nil:
	case !p.Prepares:
		return c.unknownName(o, i, wire.Query, size, p.Name)
	case c.statementsOf().len() >= c.f.cfg.Load().General.PreparedStatementsClientLimit:
		return c.refuse(o, i, wire.Query, size, errTooManyStatements(c.f.cfg.Load().General.PreparedStatementsClientLimit))
	default:
		var err error
		st, err = c.f.statements.Intern(sql[p.To:p.End], backend.SQLPlan(c.plan()))
		if err != nil {
			return c.refuse(o, i, wire.Query, size, errStatementMemory(size, c.f.statements.Limit()))
		}
		c.put(p.Name, st)
		isNew = true
	}
	c.working()
	quoted := `"` + backend.StatementName(st.ID()) + `"`
	query := string(sql[:p.From]) + quoted + string(sql[p.To:])
	rename := backend.Rename{
		At:    utf8.RuneCount(sql[:p.From]) + len(quoted),
		Shift: len(quoted) - utf8.RuneCount(sql[p.From:p.To]),
	}
	if !p.Prepares {
		c.executes(st)
	}
	if b := o.stage(i, i+size); isNew {
		o.staged = c.server.PrepareSQL(b, p.Name, st, query, p.Alone, rename)
	} else {
		// An EXECUTE, or a PREPARE of a name that is taken, as Postgres will say.
		o.staged = c.server.QuerySQL(b, p.Name, st, query, rename)
	}
	return i + size, nil
}

// executes notes what an EXECUTE may do to the session: what the text that was prepared says.
func (c *Client) executes(st *cache.Statement) {
	if !c.judges() || c.server.Skipping() {
		return
	}
	leaves, known := st.Judged()
	if known && !leaves {
		return
	}
	v := c.f.verdicts.Judge(append([]byte("PREPARE p"), st.Text()...), needsOf[c.pool.Settings().Parser])
	if !v.Has(verdict.Unknown) {
		st.SetJudged(v.Has(verdict.Session &^ verdict.Prepare))
	}
	v.Flags &^= verdict.Prepare
	c.server.Touch(v)
}

// parsedSQL deals with commands that name a statement and come in a Parse. It returns -1 if
// the Parse is to be dealt with like any other.
func (c *Client) parsedSQL(o *output, i, size int, name, text []byte) (int, *Error) {
	sql, _, _ := wire.CString(text)
	if p, ok := c.f.classifier.Prepared(sql); ok {
		if c.f.renamingSQL.Load() {
			return c.refuse(o, i, wire.Parse, size, errSQLByProtocol())
		}
		return c.unknownName(o, i, wire.Parse, size, p.Name)
	}
	dropped, all, ok := c.f.classifier.Deallocates(sql)
	if !ok || all {
		return -1, nil
	}
	if c.unsettled() {
		return i, nil
	}
	if c.prepared == nil || c.prepared.get([]byte(dropped)) == nil {
		return c.unknownName(o, i, wire.Parse, size, dropped)
	}
	if len(name) > 0 {
		return c.refuse(o, i, wire.Parse, size, errSQLByProtocol())
	}
	st := c.prepared.get([]byte(dropped))
	c.dropUnnamed()
	o.unnamed = nil
	c.server.HasUnnamed()
	c.prepared.names.Delete(dropped)
	c.dropEmpty()
	c.working()
	o.staged = c.server.DropSQL(o.stage(i, i+size), dropped, st)
	return i + size, nil
}

// unknownName is for a name that is none of the client's: Postgres says that there is no such
// statement, unless it may be that of somebody else's on the server.
func (c *Client) unknownName(o *output, i int, typ byte, size int, name string) (int, *Error) {
	if !backend.IsStatementName(name) {
		return -1, nil
	}
	return c.refuse(o, i, typ, size, errReservedName(name))
}

// refuse has the client told of an error instead of an answer to its message, when it is that
// message's turn.
func (c *Client) refuse(o *output, i int, typ byte, size int, e *Error) (int, *Error) {
	next := min(i+size, len(o.b))
	if typ != wire.Query && c.server.Refusing() {
		o.staged = o.stage(i, next) // Postgres would ignore it
	} else {
		c.f.logError(c, e)
		c.working()
		o.staged = c.server.Refuse(o.stage(i, next), typ, appendError(nil, e))
	}
	if next < i+size {
		c.left, c.drop = int32(i+size-next), true
	}
	return next, nil
}
