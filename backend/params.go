package backend

import (
	"slices"
	"strings"
)

// Param is one run-time parameter of Postgres by name, as it stands in a
// StartupMessage or a ParameterStatus message.
type Param struct {
	Name, Value string
}

// Set is an immutable set of run-time parameters. Sets are interned: two are
// equal (==) if and only if they hold the same, and a thousand clients with
// the same settings share one. The zero value is the empty set.
type Set struct {
	t *setText
}

// MakeSet returns the set of the given parameters. Of several with the same
// name, compared as Postgres does without regard to case, the last one holds.
func MakeSet(params []Param) Set {
	sorted := make([]Param, 0, len(params))
	for _, p := range params {
		sorted = put(sorted, p)
	}
	return intern(sorted)
}

// compareNames orders parameter names like Postgres: without regard to case.
func compareNames(a, b string) int {
	return strings.Compare(strings.ToLower(a), strings.ToLower(b))
}

func find(sorted []Param, name string) (int, bool) {
	return slices.BinarySearchFunc(sorted, name, func(p Param, name string) int {
		return compareNames(p.Name, name)
	})
}

func put(sorted []Param, p Param) []Param {
	i, found := find(sorted, p.Name)
	if found {
		sorted[i] = p
		return sorted
	}
	return slices.Insert(sorted, i, p)
}

func drop(sorted []Param, name string) []Param {
	if i, found := find(sorted, name); found {
		return slices.Delete(sorted, i, i+1)
	}
	return sorted
}

func intern(sorted []Param) Set {
	if len(sorted) == 0 {
		return Set{}
	}
	var b strings.Builder
	for _, p := range sorted {
		b.WriteString(p.Name)
		b.WriteByte(0)
		b.WriteString(p.Value)
		b.WriteByte(0)
	}
	return Set{sets.intern(b.String())}
}

// Params returns what the set holds, ordered by name, in a slice of the
// caller's own.
func (s Set) Params() []Param {
	if s == (Set{}) {
		return nil
	}
	fields := strings.Split(s.t.text, "\x00")
	params := make([]Param, 0, len(fields)/2)
	for i := 0; i+1 < len(fields); i += 2 {
		params = append(params, Param{fields[i], fields[i+1]})
	}
	return params
}

// Get returns the value of a parameter.
func (s Set) Get(name string) (value string, ok bool) {
	params := s.Params()
	i, ok := find(params, name)
	if !ok {
		return "", false
	}
	return params[i].Value, true
}

// With returns the set with one parameter put or changed.
func (s Set) With(name, value string) Set {
	return intern(put(s.Params(), Param{name, value}))
}

// Without returns the set without a parameter.
func (s Set) Without(name string) Set { return intern(drop(s.Params(), name)) }

// Len is the number of bytes of names and values that the set stands for.
func (s Set) Len() int {
	if s == (Set{}) {
		return 0
	}
	return len(s.t.text)
}

// change is what must be done to a session that has the set "from" to make it
// one that has the set "to": parameters to set and parameters to reset.
func change(from, to Set) (set []Param, reset []string) {
	have, want := from.Params(), to.Params()
	for _, p := range want {
		if i, ok := find(have, p.Name); !ok || have[i].Value != p.Value {
			set = append(set, p)
		}
	}
	for _, p := range have {
		if _, ok := find(want, p.Name); !ok {
			reset = append(reset, p.Name)
		}
	}
	return set, reset
}

// maxColumns is how many columns a SELECT of ours has: Postgres allows 1,664.
const maxColumns = 1600

// changeSQL is change as one text. set_config takes a value as a
// StartupMessage does, lists included, and resets a parameter when the value
// is NULL; the schema is named because search_path is the client's.
func changeSQL(from, to Set) string {
	set, reset := change(from, to)
	var calls []string
	for _, p := range set {
		calls = append(calls, setConfig(p.Name, quote(p.Value)))
	}
	for _, name := range reset {
		calls = append(calls, setConfig(name, "NULL"))
	}
	var b strings.Builder
	for i, call := range calls {
		switch {
		case i == 0:
			b.WriteString("SELECT ")
		case i%maxColumns == 0:
			b.WriteString("; SELECT ")
		default:
			b.WriteString(", ")
		}
		b.WriteString(call)
	}
	return b.String()
}

func setConfig(name, value string) string {
	return "pg_catalog.set_config(" + quote(name) + ", " + value + ", false)"
}

// quote makes a string constant that reads the same whatever
// standard_conforming_strings is.
func quote(s string) string {
	q := "'" + strings.ReplaceAll(s, "'", "''") + "'"
	if strings.Contains(s, `\`) {
		q = "E" + strings.ReplaceAll(q, `\`, `\\`)
	}
	return q
}

// reportOnly are the parameters that Postgres reports and nobody can set, or
// that say who the session is rather than how it behaves.
var reportOnly = map[string]bool{
	"server_version":        true,
	"server_encoding":       true,
	"is_superuser":          true,
	"session_authorization": true,
	"integer_datetimes":     true,
	"in_hot_standby":        true,
}

// Greeting is what a server reported at its login, in its order, and so what
// a client is told at its own. It is immutable.
type Greeting struct {
	Params   []Param
	base     Set   // of Params
	settable Set   // base without what nobody can set
	size     int64 // what it takes in bytes
}

// NewGreeting makes a greeting of what was reported.
func NewGreeting(params []Param) *Greeting {
	g := &Greeting{Params: params, base: MakeSet(params)}
	g.settable = MakeSet(slices.DeleteFunc(slices.Clone(params), func(p Param) bool { return reportOnly[p.Name] }))
	g.size = g.cost()
	return g
}

// Alike reports whether sessions of both begin with the same settings, so that a [Set]
// means the same for both.
func (g *Greeting) Alike(o *Greeting) bool { return g.settable == o.settable }

// Adopt is the set that makes a session with this greeting what the set s makes of one
// with another.
func (g *Greeting) Adopt(s Set, of *Greeting) Set {
	if g.Alike(of) {
		return s
	}
	want := of.settable.Params()
	for _, p := range s.Params() {
		want = put(want, p)
	}
	return g.Normalize(intern(want))
}

// Normalize returns the set without what every session has from the start.
func (g *Greeting) Normalize(s Set) Set {
	params := slices.DeleteFunc(s.Params(), func(p Param) bool {
		base, ok := g.base.Get(p.Name)
		return ok && base == p.Value
	})
	return intern(params)
}

// For returns what a client with the set s is told.
func (g *Greeting) For(s Set) []Param {
	params := slices.Clone(g.Params)
	for i := range params {
		if value, ok := s.Get(params[i].Name); ok {
			params[i].Value = value
		}
	}
	return params
}

// reported returns the set s after Postgres reported a new value.
func (g *Greeting) reported(s Set, name, value string) Set {
	return intern(g.put(s.Params(), name, value))
}

func (g *Greeting) put(sorted []Param, name, value string) []Param {
	if reportOnly[name] {
		return sorted
	}
	if base, ok := g.base.Get(name); ok && base == value {
		return drop(sorted, name)
	}
	return put(sorted, Param{name, value})
}

// Key is a text that is the same for equal sets only.
func (s Set) Key() string {
	if s == (Set{}) {
		return ""
	}
	return s.t.text
}
