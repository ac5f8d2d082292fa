package backend

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/pgebb/pgebb/internal/verdict"
)

// This file asks Postgres what a client has made of its session.

// Look asks Postgres what the session's run-time parameters are, and whether there is
// something that the client would lose with the server: an advisory lock, or another
// session user. [Server.Params] is then what they are. done is called with the parameters
// that the client is to have from now on, which is more if it has reset some that it came with
// (start). The error is [ErrParameters] if they are too many to follow the client.
func (s *Server) Look(start Set, done func(want Set, err error)) error {
	t := s.touched
	names := t.names
	if t.flags&verdict.Unnamed != 0 {
		names = customOf(names, s.params, start)
	}
	return s.AskRows(lookSQL(t.flags, slices.Sorted(maps.Keys(names))), func(rows [][]string, err error) {
		switch {
		case errors.Is(err, ErrAnswer):
			done(start, fmt.Errorf("%w: %w", ErrParameters, err))
		case err != nil:
			done(start, err)
		case t.lost:
			done(start, fmt.Errorf("%w: names of more than %d bytes in one transaction", ErrParameters, maxTouchedBytes))
		case !isLook(rows):
			done(start, errLook)
		default:
			done(s.looked(t.flags, names, rows, start), nil)
		}
	})
}

// ErrParameters says that the run-time parameters of a session are too many to follow the client.
var ErrParameters = errors.New("the run-time parameters of the session are too large")

// errLook says that the answer to lookSQL is none.
var errLook = errors.New("the state of the session cannot be read")

// customOf are those of some names and of the parameters of sets that have a dot. The others are
// listed.
func customOf(touched map[string]bool, sets ...Set) map[string]bool {
	names := map[string]bool{}
	for name := range touched {
		if custom(name) {
			names[name] = true
		}
	}
	for _, set := range sets {
		for _, p := range set.Params() {
			if custom(p.Name) {
				names[strings.ToLower(p.Name)] = true
			}
		}
	}
	return names
}

// Pinned reports whether the client would lose something with the server, as it was found
// the last time.
func (s *Server) Pinned() bool { return s.remains&(verdict.Lock|verdict.Authorization) != 0 }

// The first row of an answer to lookSQL has these columns and those for present, the others are
// the names and values of parameters.
const (
	lookLocked = iota
	lookUser
	lookRole
	lookPresent
)

func isLook(rows [][]string) bool {
	if len(rows) == 0 || len(rows[0]) != lookPresent+len(present) {
		return false
	}
	for _, row := range rows[1:] {
		if len(row) != 2 {
			return false
		}
	}
	return true
}

// lookSQL is the question. Everything in it is named with its schema, because search_path is
// the client's.
func lookSQL(touched verdict.Flags, names []string) string {
	var b strings.Builder
	b.WriteString(`SELECT EXISTS (SELECT FROM pg_catalog.pg_locks WHERE locktype OPERATOR(pg_catalog.=) 'advisory'` +
		` AND pid OPERATOR(pg_catalog.=) pg_catalog.pg_backend_pid()), session_user, pg_catalog.current_setting('role')`)
	for i, f := range present {
		if touched&f == 0 {
			b.WriteString(", false")
			continue
		}
		b.WriteString(", EXISTS (SELECT FROM " + presentIn[i] + ")")
	}
	if touched&verdict.Unnamed != 0 {
		b.WriteString("; SELECT name, pg_catalog.current_setting(name) FROM pg_catalog.pg_settings WHERE source OPERATOR(pg_catalog.=) 'session'")
	}
	if len(names) > 0 {
		// Nobody has set one that is NULL.
		b.WriteString("; SELECT n, pg_catalog.current_setting(n, true) FROM pg_catalog.unnest(ARRAY[" + quote(names[0]))
		for _, name := range names[1:] {
			b.WriteString(", " + quote(name))
		}
		b.WriteString("]::pg_catalog.text[]) AS names(n) WHERE pg_catalog.current_setting(n, true) IS NOT NULL")
	}
	return b.String()
}

// present is what else is looked for if it may be there, and presentIn where.
var present = []verdict.Flags{verdict.Temp, verdict.Hold, verdict.Prepare}

var presentIn = []string{
	"pg_catalog.pg_class WHERE relnamespace OPERATOR(pg_catalog.=) pg_catalog.pg_my_temp_schema()",
	"pg_catalog.pg_cursors WHERE is_holdable",
	"pg_catalog.pg_prepared_statements WHERE from_sql AND NOT pg_catalog.starts_with(name, '" + statementPrefix + "')",
}

// looked takes the answer in, and returns the parameters that the client is to have.
func (s *Server) looked(done verdict.Flags, names map[string]bool, rows [][]string, start Set) (want Set) {
	first := rows[0]
	flags := s.touched.flags &^ (lookedAt | verdict.Unnamed)
	for i, f := range present {
		if first[lookPresent+i] != "t" {
			flags &^= f
		}
	}
	s.touched = touched{flags: flags}
	s.remains &^= verdict.Lock | verdict.Authorization
	if first[lookLocked] == "t" {
		s.remains |= verdict.Lock
	}
	own := first[lookUser] == s.Target.User
	if !own {
		s.remains |= verdict.Authorization
	}
	all := done&verdict.Unnamed != 0
	if all {
		// Parameters of extensions are not listed; what is not known is reset.
		s.remains |= verdict.Settings
	}
	params, missing := s.found(rows[1:], names, all, start)
	params = drop(params, roleParameter)
	if first[lookRole] != "none" && own {
		params = put(params, Param{roleParameter, first[lookRole]})
	}
	s.params = intern(params)
	for _, p := range missing {
		params = put(params, p)
	}
	return intern(params)
}

// roleParameter is the parameter that SET ROLE sets. Nothing but RESET ROLE resets it.
const roleParameter = "role"

// found is what the parameters are by the rows of an answer: those with a name that was asked for,
// and, if all, those that Postgres lists because they differ in the session; those that it
// does not list are as they were. missing are those of start that were reset, and are to have
// their values again: what a client comes with is what RESET goes back to.
func (s *Server) found(rows [][]string, names map[string]bool, all bool, start Set) (after, missing []Param) {
	after = slices.DeleteFunc(s.params.Params(), func(p Param) bool { return all && !custom(p.Name) })
	listed := map[string]bool{}
	for _, row := range rows {
		name, value := strings.ToLower(row[0]), row[1]
		listed[name] = true
		if names[name] && value == "" && all && custom(name) {
			if came, ok := start.Get(name); ok {
				missing = append(missing, Param{name, came}) // it was reset
			}
		}
		after = s.Greeting.followed(after, row[0], value)
	}
	for _, p := range start.Params() {
		if all && !listed[strings.ToLower(p.Name)] && !custom(p.Name) {
			missing = append(missing, p)
		}
	}
	return after, missing
}

// followed puts a parameter that was found in the session.
func (g *Greeting) followed(sorted []Param, name, value string) []Param {
	if notFollowed[name] || name == roleParameter {
		return sorted
	}
	return g.put(sorted, name, value)
}

// notFollowed are parameters of the transaction, and what says who the session is.
var notFollowed = map[string]bool{
	"transaction_isolation":  true,
	"transaction_read_only":  true,
	"transaction_deferrable": true,
	"session_authorization":  true,
}
