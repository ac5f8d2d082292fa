package frontend

import (
	"math"

	"github.com/pgebb/pgebb/cache"
	"github.com/pgebb/pgebb/internal/querylog"
	"github.com/pgebb/pgebb/internal/wire"
)

// This file gives the query log what clients ask for: the text of each Query and Parse as it
// comes, and that of each Bind of what was parsed before. What a client has sent is logged
// whatever becomes of it; what pgebb itself asks Postgres is not.

// note has the message that begins at index i of the input b logged, if there is a query log.
// It is so small that the compiler inlines it.
func (c *Client) note(b []byte, i int) {
	if c.f.queries.On() {
		c.logQuery(b, i)
	}
}

// logQuery logs a message of which there may be only a part, unless it was logged before and
// could not be dealt with then.
func (c *Client) logQuery(b []byte, i int) {
	if i < int(c.logged) {
		return
	}
	typ, size := wire.Header(b[i:])
	body := b[i+wire.HeaderSize : min(i+size, len(b))]
	line := querylog.Line{Client: c.id}
	switch typ {
	case wire.Query:
		line.Kind = querylog.Query
		line.Text, _, _ = wire.CString(body)
		line.Length = size - wire.HeaderSize - 1
	case wire.Parse:
		line.Kind = querylog.Parse
		name, text, ok := wire.CString(body)
		sql, _, whole := wire.CString(text)
		line.Name, line.Text, line.Length = name, sql, len(sql)
		if ok && !whole {
			line.Length = size - wire.HeaderSize - len(name) - 4 // and less, if types of parameters follow
		}
		c.fresh = ok && len(name) == 0
	case wire.Bind:
		if !c.logBind(&line, body) {
			return
		}
	default:
		return
	}
	c.logged = uint16(min(i+1, math.MaxUint16)) // input is no longer, but for a Parse that begins at 0
	set := c.pool.Settings()
	line.User, line.Database = set.User, set.Database
	line.Host, line.Port = c.RemoteAddr()
	c.f.queries.Add(&line)
}

// logBind fills in a line for a Bind; false if it has none: because the line of the Parse before
// it says the same, or because the name is not settled, so that the message comes again.
func (c *Client) logBind(line *querylog.Line, body []byte) bool {
	line.Kind = querylog.Execute
	_, rest, _ := wire.CString(body)
	name, _, ok := wire.CString(rest)
	if !ok {
		return false
	}
	if len(name) == 0 && c.fresh {
		c.fresh = false
		return false
	}
	if s := c.server; s != nil && len(name) > 0 && c.renames() && s.Unsettled() && !s.Skipping() {
		return false
	}
	line.Name = name
	var st *cache.Statement
	if p := c.prepared; p != nil {
		if st = p.unnamed; len(name) > 0 {
			st = p.get(cutName(name))
		}
	}
	if st != nil { // otherwise it is the server's alone, as in session mode
		line.Text = st.Text()
		line.Length = len(line.Text)
	}
	return true
}

// notedUpTo moves on what is logged by as much of the input as is dealt with.
func (c *Client) notedUpTo(used int) { c.logged -= min(c.logged, uint16(min(used, math.MaxUint16))) }
