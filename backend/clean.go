package backend

import (
	"slices"
	"strings"

	"github.com/pgebb/pgebb/internal/verdict"
)

// This file keeps what a client leaves in the session of its server from whoever gets the
// server next. What may be left is known from the verdicts on what the client has sent
// (package parser), or, without those, from what Postgres says that it has done. Only what
// is needed is sent: nothing, if nothing may be left.

// maxTouched is how many run-time parameters are remembered by name; if there are more, all
// are looked at. Those with a dot in their name do not count: Postgres does not list them all,
// so they have to be asked for by name. maxTouchedBytes is for the names of these.
const (
	maxTouched      = 16
	maxTouchedBytes = 256 << 10
)

// touched is what has been done to a session since it was last looked at.
type touched struct {
	flags  verdict.Flags   // of verdict.Session, with Unnamed and Unknown
	names  map[string]bool // of parameters; only those with a dot matter if Unnamed is set
	listed int             // how many of them have none
	bytes  int             // of those that have one
	lost   bool            // there were too many
}

// inSession are the flags that matter here.
const inSession = verdict.Session | verdict.Unnamed

// lookedAt are those of them that are looked at while the client still holds the server.
const lookedAt = verdict.Settings | verdict.Authorization | verdict.Lock

// Touch notes what the server is about to be sent.
func (s *Server) Touch(v verdict.Verdict) {
	t := &s.touched
	t.flags |= v.Flags & inSession
	for _, set := range v.Settings {
		if set.Local {
			continue
		}
		if set.Reset {
			t.flags |= verdict.Unnamed
		}
		t.note(set.Name, v.Has(verdict.Unknown))
	}
}

// note remembers the name of a parameter; maybe says that it may be none.
func (t *touched) note(name string, maybe bool) {
	if t.names[name] {
		return
	}
	if custom(name) {
		if t.bytes+len(name) > maxTouchedBytes {
			t.lost = t.lost || !maybe
			return
		}
		t.bytes += len(name)
	} else {
		if t.listed == maxTouched {
			t.flags |= verdict.Unnamed
			return
		}
		t.listed++
	}
	if t.names == nil {
		t.names = map[string]bool{}
	}
	t.names[name] = true
}

// custom reports whether a parameter is one of an extension or an application.
func custom(name string) bool { return strings.Contains(name, ".") }

// Left is what may have been left in the session and must be cleaned before anybody else
// gets it.
func (s *Server) Left() verdict.Flags { return s.touched.flags | s.remains }

// LooksChanged reports whether the session must be looked at before the client lets the
// server go, see [Server.Look].
func (s *Server) LooksChanged() bool { return s.touched.flags&lookedAt != 0 }

// touchedBy notes what Postgres says that it has done, for a client on whose statements there
// are no verdicts. A client that has the session to itself needs only what it came with back.
func (s *Server) touchedBy(tag []byte) {
	if len(tag) < 4 {
		return
	}
	ours := !s.recovery.Reset
	switch command := string(tag[:4]); {
	case command == "RESE", command == "SET\x00" && ours:
		s.touched.flags |= verdict.Settings | verdict.Unnamed | verdict.Authorization
	case command == "DISC":
		s.touched.flags |= verdict.Settings | verdict.Unnamed
	case command == "PREP" && ours && !s.recovery.Renamed:
		s.touched.flags |= verdict.Prepare
	case command == "DECL" && ours:
		s.touched.flags |= verdict.Hold
	}
}

// dropPrepared drops what PREPARE has made, but for what has a name of ours.
const dropPrepared = `DO $$DECLARE n text; BEGIN FOR n IN SELECT name FROM pg_catalog.pg_prepared_statements` +
	` WHERE from_sql AND NOT pg_catalog.starts_with(name, '` + statementPrefix + `') LOOP` +
	` EXECUTE pg_catalog.concat('DEALLOCATE ', pg_catalog.quote_ident(n)); END LOOP; END$$`

// cleaning is what is to be sent to a session in which something may be left, and what is
// known of the session after it.
func (s *Server) cleaning() (queries []string, then func()) {
	left := s.Left()
	unlooked := s.touched.flags & lookedAt
	if left&verdict.Authorization != 0 {
		queries = append(queries, "SET SESSION AUTHORIZATION DEFAULT")
	}
	resets := unlooked&(verdict.Settings|verdict.Authorization) != 0 || s.remains&(verdict.Settings|verdict.Authorization) != 0
	if _, other := s.params.Get(roleParameter); resets && (other || unlooked != 0) {
		queries = append(queries, "RESET ROLE")
	}
	if resets {
		queries = append(queries, "RESET ALL")
	}
	if left&verdict.Hold != 0 {
		queries = append(queries, "CLOSE ALL")
	}
	if left&verdict.Temp != 0 {
		queries = append(queries, "DISCARD TEMP")
	}
	if left&verdict.Lock != 0 {
		queries = append(queries, "SELECT pg_catalog.pg_advisory_unlock_all()")
	}
	if left&verdict.Listen != 0 {
		queries = append(queries, "UNLISTEN *")
	}
	if s.noted {
		queries = append(queries, "RESET "+equalNote)
	}
	if left&verdict.Prepare != 0 {
		queries = append(queries, dropPrepared)
	}
	return queries, func() {
		if resets {
			s.params = Set{}
		}
		s.touched, s.remains = touched{}, 0
		s.endListening()
	}
}

// meaningless are parameters that cannot change what a statement means. Those of
// extensions and applications, with a dot in their name, are looked at when it is carried out.
var meaningless = map[string]bool{
	"application_name": true, "client_min_messages": true, "statement_timeout": true, "lock_timeout": true,
	"idle_in_transaction_session_timeout": true, "idle_session_timeout": true, "transaction_timeout": true,
	"work_mem": true, "maintenance_work_mem": true, "temp_buffers": true, "default_transaction_read_only": true,
	"default_transaction_isolation": true, "default_transaction_deferrable": true, "synchronous_commit": true,
}

// Meaning is the set without what cannot change what a statement means.
func (s Set) Meaning() Set {
	return intern(slices.DeleteFunc(s.Params(), func(p Param) bool {
		return custom(p.Name) || meaningless[strings.ToLower(p.Name)]
	}))
}
