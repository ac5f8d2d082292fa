package backend

import (
	"bytes"

	"github.com/pgebb/pgebb/cache"
	"github.com/pgebb/pgebb/internal/wire"
)

// This file keeps whose the unnamed statement of a server is: what another client has left
// there must be out of reach of the one who holds the server.

// HasUnnamed notes that the client has sent a Parse of the unnamed statement.
func (s *Server) HasUnnamed() { s.unnamed, s.unnamedNow = s.checkouts, true }

// LacksUnnamed notes that the client has sent what drops it.
func (s *Server) LacksUnnamed() { s.unnamed, s.unnamedNow = 0, false }

// Unnamed reports whether the server's unnamed statement is of the client's present checkout,
// as far as Postgres has answered.
func (s *Server) Unnamed() bool { return s.unnamed == s.checkouts }

// UnnamedInBatch reports whether it is of the batch at hand: when it does not exist in the
// end, then because of an error that makes Postgres ignore the rest of the batch.
func (s *Server) UnnamedInBatch() bool { return s.unnamedNow }

// Behind reports whether an earlier batch is not answered yet. During a COPY nothing is waited
// for.
func (s *Server) Behind() bool { return s.ops.ends > 0 && !s.copyIn }

// UseUnnamed appends to b what must be sent before a message that names the unnamed
// statement, which is the client's from an earlier batch.
func (s *Server) UseUnnamed(b []byte, st *cache.Statement) []byte {
	s.record(opUnnamed, record{st: st})
	s.HasUnnamed()
	return appendParse(b, "", st.Body())
}

// unnamedIgnored follows a client's Parse of the unnamed statement that Postgres has refused
// or ignored.
func (s *Server) unnamedIgnored() {
	if bytes.IndexByte(s.ops.waiting(), wire.Parse) >= 0 {
		return // there is another behind it
	}
	s.LacksUnnamed()
	if s.client != nil {
		s.client.Undefine("", nil)
	}
}
