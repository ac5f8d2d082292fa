package frontend

import (
	"bytes"

	"github.com/pgebb/pgebb/backend"
	"github.com/pgebb/pgebb/config"
	"github.com/pgebb/pgebb/internal/wire"
	"github.com/pgebb/pgebb/pool"
)

// This file is read_write_strategy = "aggressive": a transaction goes where its first
// statement can go. Its BEGIN is answered here, and sent when it is known where to.

// maxBegin is the longest text in bytes that is looked at.
const maxBegin = 64

// defers answers the BEGIN of a client without a server if what follows is to decide on the
// host. Only a BEGIN without any option is deferred, since Postgres need not be asked
// whether that is right.
func (c *Client) defers(body []byte) bool {
	if c.begun || c.role != pool.Any || !c.pool.Cluster().Split() || c.pool.Settings().Mode != config.Transaction {
		return false
	}
	sql, rest, ok := wire.CString(body)
	if !ok || len(rest) > 0 {
		return false
	}
	tag := plainBegin(sql)
	if tag == "" {
		return false
	}
	c.begun = true
	c.dropUnnamed() // as any Query does
	c.totals.queries++
	c.pool.Counters(c.Loop()).Queries++
	c.write(c.appendReady(wire.AppendRaw(nil, wire.CommandComplete, append([]byte(tag), 0))))
	return true
}

// plainBegin is the tag of a statement that begins a transaction and says nothing else,
// empty if it is none.
func plainBegin(sql []byte) (tag string) {
	if len(sql) > maxBegin {
		return ""
	}
	words := bytes.Fields(bytes.ToLower(bytes.TrimRight(sql, "; \t\r\n")))
	switch string(bytes.Join(words, []byte(" "))) {
	case "begin", "begin work", "begin transaction":
		return "BEGIN"
	case "start transaction":
		return "START TRANSACTION"
	}
	return ""
}

// beginDeferred sends the BEGIN that was deferred.
func (c *Client) beginDeferred(s *backend.Server) {
	c.state = stateLinking
	err := s.Ask([]string{"BEGIN"}, func(failures []backend.Failure) {
		if len(failures) > 0 {
			c.bye(errParameters(failures[0]))
			return
		}
		c.linked()
	})
	if err != nil {
		s.Broken(err) // calls ServerLost
	}
}

// appendReady appends the ReadyForQuery of a client without a server.
func (c *Client) appendReady(b []byte) []byte {
	if c.begun {
		return wire.AppendReadyForQuery(b, wire.InTransaction)
	}
	return appendReady(b)
}
