package backend

import (
	"errors"
	"slices"
	"strings"

	"github.com/pgebb/pgebb/internal/verdict"
)

// This file keeps what a client leaves in the session of its server from whoever gets the
// server next. What may be left is known from the verdicts on what the client has sent
// (package parser), or, without those, from what Postgres says that it has done. Only what
// is needed is sent: nothing, if nothing may be left.

// maxTouched is how many run-time parameters are remembered by name; if there are more, all
// are looked at.
const maxTouched = 16

// maxCustom is how many run-time parameters are asked for by name at a time: Postgres has
// 1,664 columns at most.
const maxCustom = 1600

// touched is what has been done to a session since it was last looked at.
type touched struct {
	flags verdict.Flags // of verdict.Session, with Unnamed and Unknown
	names []string      // of parameters; valid unless Unnamed is set
}

// inSession are the flags that matter here.
const inSession = verdict.Session | verdict.Unnamed

// lookedAt are those of them that are looked at while the client still holds the server.
const lookedAt = verdict.Settings | verdict.Authorization | verdict.Lock

// Touch notes what the server is about to be sent.
func (s *Server) Touch(v verdict.Verdict) {
	f := v.Flags & inSession
	s.touched.flags |= f
	for _, set := range v.Settings {
		switch {
		case set.Local:
		case set.Reset, len(s.touched.names) == maxTouched:
			s.touched.flags |= verdict.Unnamed
		case !slices.Contains(s.touched.names, set.Name):
			s.touched.names = append(s.touched.names, set.Name)
		}
	}
}

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

// Look asks Postgres what the session's run-time parameters are, and whether there is
// something that the client would lose with the server: an advisory lock, or another
// session user. [Server.Params] is then what they are. done is called with the parameters
// that the client is to have from now on, which is more if it has reset some that it came with
// (start).
func (s *Server) Look(start Set, done func(want Set, err error)) error {
	t := s.touched
	if t.flags&verdict.Unnamed != 0 {
		t.names = withCustom(t.names, s.params, start)
	}
	err := s.Ask([]string{lookSQL(t)}, func(failures []Failure) {
		row := s.row
		s.row = nil
		switch {
		case len(failures) > 0:
			done(start, failures[0])
		case len(row) != lookColumns+len(t.names):
			done(start, errLook)
		default:
			done(s.looked(t, row, start), nil)
		}
	})
	s.exchange.wantsRow = true
	return err
}

// withCustom adds the names of the parameters with a dot in their name to a list of names.
// pg_settings does not list those that no extension has defined, so they are asked for one by
// one, as far as a SELECT can have columns.
func withCustom(names []string, sets ...Set) []string {
	names = slices.Clone(names)
	there := map[string]bool{}
	for _, name := range names {
		there[strings.ToLower(name)] = true
	}
	for _, set := range sets {
		for _, p := range set.Params() {
			name := strings.ToLower(p.Name)
			if len(names) < maxCustom && strings.Contains(name, ".") && !there[name] {
				there[name] = true
				names = append(names, name)
			}
		}
	}
	return names
}

// Pinned reports whether the client would lose something with the server, as it was found
// the last time.
func (s *Server) Pinned() bool { return s.remains&(verdict.Lock|verdict.Authorization) != 0 }

// errLook says that the answer to lookSQL is none.
var errLook = errors.New("the state of the session cannot be read")

// lookColumns are the columns of the answer in front of those of the named parameters.
const lookColumns = 7

// Separators of what is listed in a column. A parameter whose value has them gets a value
// that is wrong, but nothing that its own session could not have.
const (
	nextField = "\x01"
	nextItem  = "\x02"
)

// lookSQL is the question. Everything in it is named with its schema, because search_path is
// the client's.
func lookSQL(t touched) string {
	var b strings.Builder
	b.WriteString(`SELECT EXISTS (SELECT FROM pg_catalog.pg_locks WHERE locktype OPERATOR(pg_catalog.=) 'advisory'` +
		` AND pid OPERATOR(pg_catalog.=) pg_catalog.pg_backend_pid()), session_user, pg_catalog.current_setting('role'), `)
	if t.flags&verdict.Unnamed != 0 {
		b.WriteString(`(SELECT pg_catalog.string_agg(pg_catalog.concat(name, '` + nextField + `', pg_catalog.current_setting(name)), '` + nextItem +
			`') FROM pg_catalog.pg_settings WHERE source OPERATOR(pg_catalog.=) 'session')`)
	} else {
		b.WriteString("NULL")
	}
	for i, f := range present {
		if t.flags&f == 0 {
			b.WriteString(", false")
			continue
		}
		b.WriteString(", EXISTS (SELECT FROM " + presentIn[i] + ")")
	}
	for _, name := range t.names {
		b.WriteString(", pg_catalog.current_setting(" + quote(name) + ", true)")
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
func (s *Server) looked(t touched, row []string, start Set) (want Set) {
	s.touched.flags &^= lookedAt | verdict.Unnamed
	s.touched.names = nil
	for i, f := range present {
		if row[lookColumns-len(present)+i] != "t" {
			s.touched.flags &^= f
		}
	}
	s.remains &^= verdict.Lock | verdict.Authorization
	if row[0] == "t" {
		s.remains |= verdict.Lock
	}
	if row[1] != s.Target.User {
		s.remains |= verdict.Authorization
	}
	var missing []Param
	params := s.params
	if t.flags&verdict.Unnamed != 0 {
		params, missing = s.listed(row[3], start)
		// Parameters of extensions are not listed; what is not known is reset.
		s.remains |= verdict.Settings
	}
	for i, name := range t.names {
		value := row[lookColumns+i]
		if came, ok := start.Get(name); ok && value == "" && t.flags&verdict.Unnamed != 0 && strings.Contains(name, ".") {
			missing = append(missing, Param{name, came}) // it was reset
		}
		params = s.Greeting.followed(params, name, value)
	}
	if params = params.Without(roleParameter); row[2] != "none" && row[1] == s.Target.User {
		params = params.With(roleParameter, row[2])
	}
	s.params = params
	for _, p := range missing {
		params = params.With(p.Name, p.Value)
	}
	return params
}

// roleParameter is the parameter that SET ROLE sets. Nothing but RESET ROLE resets it.
const roleParameter = "role"

// listed is the set when Postgres has listed all parameters that differ in the session, with
// those that it does not list (see withCustom) as they were. missing are those of start that were
// reset, and are to have their values again: what a client comes with is what RESET goes back to.
func (s *Server) listed(list string, start Set) (after Set, missing []Param) {
	for _, p := range s.params.Params() {
		if strings.Contains(p.Name, ".") {
			after = after.With(p.Name, p.Value)
		}
	}
	listed := map[string]bool{}
	for item := range strings.SplitSeq(list, nextItem) {
		if name, value, ok := strings.Cut(item, nextField); ok {
			listed[strings.ToLower(name)] = true
			after = s.Greeting.followed(after, name, value)
		}
	}
	for _, p := range start.Params() {
		if name := strings.ToLower(p.Name); !listed[name] && !strings.Contains(name, ".") {
			missing = append(missing, p)
		}
	}
	return after, missing
}

// followed returns the set with a parameter that was found in the session.
func (g *Greeting) followed(s Set, name, value string) Set {
	if notFollowed[name] || name == roleParameter {
		return s
	}
	return g.reported(s, name, value)
}

// notFollowed are parameters of the transaction, and what says who the session is.
var notFollowed = map[string]bool{
	"transaction_isolation":  true,
	"transaction_read_only":  true,
	"transaction_deferrable": true,
	"session_authorization":  true,
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
		return strings.Contains(p.Name, ".") || meaningless[strings.ToLower(p.Name)]
	}))
}
