package frontend

import (
	"bytes"
	"io"
	"testing"

	"github.com/pgebb/pgebb/backend"
	"github.com/pgebb/pgebb/internal/verdict"
	"github.com/pgebb/pgebb/internal/wire"
	"github.com/pgebb/pgebb/pool"
)

// wordJudge goes by the first word.
type wordJudge struct{}

func (wordJudge) Judge(sql []byte, _ verdict.Needs) verdict.Verdict {
	first, rest, _ := bytes.Cut(sql, []byte(" "))
	flags := map[string]verdict.Flags{
		"SELECT": 0, "BEGIN": verdict.Begin, "COMMIT": verdict.End, "PRIMARY": verdict.Primary, "REPLICA": verdict.Replica | verdict.Write,
	}
	f, ok := flags[string(first)]
	switch {
	case !ok:
		f = verdict.Write
	case bytes.Contains(rest, []byte("READ ONLY")):
		f |= verdict.ReadOnly
	case bytes.Contains(rest, []byte("READ WRITE")):
		f |= verdict.ReadWrite
	}
	return verdict.Verdict{Flags: f}
}

// routed is a client whose requests are looked at.
func routed(t testing.TB) *Client {
	f := newFrontend(t, "", io.Discard)
	f.verdicts = wordJudge{}
	read, err1 := f.statements.Intern([]byte("SELECT 1\x00\x00\x00"), "")
	write, err2 := f.statements.Intern([]byte("INSERT 1\x00\x00\x00"), "")
	if err1 != nil || err2 != nil {
		t.Fatal(err1, err2)
	}
	names := f.statements.NewNames()
	names.Put("read", read)
	names.Put("write", write)
	t.Cleanup(names.Close)
	return &Client{f: f, pool: f.registry.Find("u", "d"), role: pool.Any, prepared: &statements{names: names, unnamed: read}}
}

// bind makes a Bind of the unnamed portal.
func bind(b []byte, name string) []byte {
	return wire.AppendRaw(b, wire.Bind, append(append([]byte{0}, name...), 0, 0, 0, 0, 0, 0, 0))
}

func synced(b []byte) []byte { return wire.AppendEmpty(b, wire.Sync) }

func TestWhatARequestNeeds(t *testing.T) {
	c := routed(t)
	query := func(sql string) []byte { return wire.AppendQuery(nil, sql) }
	parse := func(b []byte, name, sql string) []byte { return wire.AppendParse(b, name, sql+"\x00\x00\x00") }
	for name, test := range map[string]struct {
		b    []byte
		want pool.Access
	}{
		"a read":                              {query("SELECT 1"), pool.Read},
		"a write":                             {query("INSERT"), pool.Write},
		"a query that is cut off":             {query("SELECT 1")[:10], pool.Write},
		"nothing":                             {nil, pool.Write},
		"a transaction":                       {query("BEGIN"), pool.Write},
		"one that only reads":                 {query("BEGIN READ ONLY"), pool.Read},
		"one that only reads, serializable":   {query("BEGIN ISOLATION LEVEL Serializable READ ONLY"), pool.Write},
		"one that writes":                     {query("BEGIN READ WRITE"), pool.Write},
		"the end of one":                      {query("COMMIT"), pool.Any},
		"a comment for the primary":           {query("PRIMARY"), pool.Write},
		"a comment for a replica":             {query("REPLICA"), pool.Replica},
		"an unnamed read":                     {synced(bind(parse(nil, "", "SELECT 1"), "")), pool.Read},
		"a named read":                        {synced(bind(parse(nil, "x", "SELECT 1"), "x")), pool.Read},
		"a batch without its end":             {bind(parse(nil, "x", "SELECT 1"), "x"), pool.Write},
		"a batch with a Flush":                {synced(wire.AppendEmpty(parse(nil, "", "SELECT 1"), wire.Flush)), pool.Write},
		"a read and a write":                  {synced(bind(parse(bind(parse(nil, "", "SELECT 1"), ""), "", "INSERT"), "")), pool.Write},
		"two reads, the second of no concern": {append(synced(bind(nil, "read")), synced(bind(nil, "write"))...), pool.Read},
		"a statement of an earlier batch":     {synced(bind(nil, "read")), pool.Read},
		"a write of an earlier batch":         {synced(bind(nil, "write")), pool.Write},
		"an unknown statement":                {synced(bind(nil, "other")), pool.Write},
		"the unnamed one of an earlier batch": {synced(bind(nil, "")), pool.Read},
		"a function call":                     {wire.AppendRaw(nil, wire.FunctionCall, make([]byte, 10)), pool.Write},
		"a name without an end":               {synced(wire.AppendRaw(nil, wire.Parse, []byte("x"))), pool.Write},
		"a Sync":                              {synced(nil), pool.Any},
	} {
		t.Run(name, func(t *testing.T) {
			if got := c.need(test.b); got != test.want {
				t.Errorf("it needs %d, want %d", got, test.want)
			}
		})
	}
}

func TestWhatAClientAsksForCountsMoreThanWhatItsStatementsNeed(t *testing.T) {
	c := routed(t)
	c.role = pool.Replica
	for sql, want := range map[string]pool.Access{"INSERT": pool.Replica, "SELECT": pool.Replica, "PRIMARY": pool.Write} {
		if got := c.need(wire.AppendQuery(nil, sql)); got != want {
			t.Errorf("%s needs %d, want %d", sql, got, want)
		}
	}
	if c.need(wire.AppendQuery(nil, "SET pgdog.role = primary")) != pool.Write || c.role != pool.Write {
		t.Errorf("after SET pgdog.role it asks for %d", c.role)
	}
	if c.need(wire.AppendQuery(nil, "RESET pgdog.role")) == pool.Replica || c.role != pool.Any {
		t.Errorf("after RESET pgdog.role it asks for %d", c.role)
	}
}

func TestASerializableClientDoesNotReadFromReplicas(t *testing.T) {
	c := routed(t)
	c.params = backend.MakeSet([]backend.Param{{Name: "default_transaction_isolation", Value: "Serializable"}})
	if got := c.need(wire.AppendQuery(nil, "SELECT 1")); got != pool.Write {
		t.Errorf("it needs %d", got)
	}
}

func TestLookingAtARequestAllocatesNothing(t *testing.T) {
	c := routed(t)
	c.f.verdicts = nothing{}
	batch := synced(bind(bind(nil, "read"), ""))
	if n := testing.AllocsPerRun(100, func() { c.need(batch) }); n > 0 {
		t.Errorf("%v allocations", n)
	}
}

// nothing judges everything to be a read.
type nothing struct{}

func (nothing) Judge([]byte, verdict.Needs) verdict.Verdict { return verdict.Verdict{} }

// FuzzNeed looks at what a client says, whatever it is: what is not a whole request never
// needs less than the primary.
func FuzzNeed(f *testing.F) {
	c := routed(f)
	for _, seed := range [][]byte{
		wire.AppendQuery(nil, "SELECT 1"), synced(bind(nil, "read")), bind(nil, ""), {'Q', 0, 0, 0, 4}, {'P', 0, 0, 0, 5, 0}, {'B', 0, 0, 0, 6, 0, 'x'},
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		c.role = pool.Any
		need := c.need(b)
		if len(b) < wire.HeaderSize && need != pool.Write {
			t.Errorf("%q needs %d", b, need)
		}
		if need > pool.Replica {
			t.Errorf("%q needs %d", b, need)
		}
	})
}
