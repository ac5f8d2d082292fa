package backend

import (
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/pgebb/pgebb/cache"
	"github.com/pgebb/pgebb/internal/wire"
)

func TestCommandsAreCountedByTheirTags(t *testing.T) {
	for tag, want := range map[string]Counters{
		"SELECT 7":                           {Reads: 1},
		"FETCH 3":                            {Reads: 1},
		"COPY 12":                            {Reads: 1},
		"INSERT 0 5":                         {Writes: 1, RowsInserted: 5},
		"INSERT 0 0":                         {Writes: 1},
		"UPDATE 4":                           {Writes: 1, RowsUpdated: 4},
		"DELETE 1234567890":                  {Writes: 1, RowsDeleted: 1234567890},
		"MERGE 6":                            {Writes: 1},
		"BEGIN":                              {},
		"CREATE TABLE":                       {},
		"SET":                                {},
		"DECLARE CURSOR":                     {},
		"":                                   {},
		" ":                                  {},
		"UPDATE":                             {}, // no tag of Postgres's
		"UPDATE ":                            {Writes: 1},
		"UPDATE x":                           {Writes: 1},
		"INSERT 5":                           {Writes: 1},
		"UPDATE -1":                          {Writes: 1},
		"UPDATE 99999999999999999999999":     {Writes: 1},
		"UPDATE 999999999999999999":          {Writes: 1, RowsUpdated: 999999999999999999},
		"SELECTED 4":                         {},
		strings.Repeat("UPDATE", 100) + " 1": {},
	} {
		t.Run(tag, func(t *testing.T) {
			s := held()
			s.Sent(wire.Query, nil)
			complete, err := (&pgproto3.CommandComplete{CommandTag: []byte(tag)}).Encode(nil)
			if err != nil {
				t.Fatal(err)
			}
			if err := feed(t, s, complete); err != nil {
				t.Fatal(err)
			}
			if *s.Stats != want {
				t.Errorf("counted %+v, want %+v", *s.Stats, want)
			}
		})
	}
}

func TestRowsThatAClientCopiesInAreInserted(t *testing.T) {
	s := held()
	play(t, s, ">Q <G >d >c")
	s.command([]byte("COPY 1000\x00"))
	if want := (Counters{Writes: 1, RowsInserted: 1000}); *s.Stats != want {
		t.Errorf("counted %+v, want %+v", *s.Stats, want)
	}
}

func TestMessagesAndErrorsAreCounted(t *testing.T) {
	for script, want := range map[string]Counters{
		">P >B >Dp >E >S <1 <2 <n <CSET <ZI": {Queries: 1, Transactions: 1, ParseMessages: 1, ClientParses: 1, BindMessages: 1},
		">P >B >E >B >E >C >S":               {ParseMessages: 1, ClientParses: 1, BindMessages: 2, CloseMessages: 1},
		">Q <E <ZI":                          {Queries: 1, Transactions: 1, Errors: 1},
		">Q <CBEGIN <ZT >Q <E <ZE":           {Queries: 2, Errors: 1},
		">P >B >E >S >P >S <E <ZI <E <ZI":    {Queries: 2, Transactions: 2, ParseMessages: 2, ClientParses: 2, BindMessages: 1, Errors: 2},
		// From the Query inside of a COPY on the count of answers is lost, but not that of errors.
		">Q <G >d >Q <E <ZI <E <ZI": {Queries: 2, Transactions: 2, Errors: 2},
	} {
		s := held()
		play(t, s, script)
		if *s.Stats != want {
			t.Errorf("after %q: counted %+v, want %+v", script, *s.Stats, want)
		}
		if s.Totals.Errors != want.Errors {
			t.Errorf("after %q: %d errors of the server, want %d", script, s.Totals.Errors, want.Errors)
		}
		if n := s.TakeErrors(); n != want.Errors {
			t.Errorf("after %q: %d errors of the client, want %d", script, n, want.Errors)
		}
		if n := s.TakeErrors(); n != 0 {
			t.Errorf("after %q: %d errors are taken twice", script, n)
		}
	}
}

// registryOwner is a pool that has a registry and nothing else.
type registryOwner struct {
	Owner
	registry *cache.Registry
}

func (o registryOwner) Registry() *cache.Registry { return o.registry }

func TestStatementsWithOtherNamesAreCountedAsTheyAreSent(t *testing.T) {
	registry := cache.NewRegistry(1<<20, 10)
	intern := func(sql string) *cache.Statement {
		st, err := registry.Intern([]byte(sql+"\x00\x00\x00"), "")
		if err != nil {
			t.Fatal(err)
		}
		return st
	}
	s := held()
	s.policy, s.owner = &StatementPolicy{Limit: 1}, registryOwner{registry: registry}
	one, two := intern("SELECT 1"), intern("SELECT 2")

	s.Prepare(nil, "a", one)
	s.Bound("a", one)
	if want := (Counters{ParseMessages: 1, BindMessages: 1}); *s.Stats != want {
		t.Errorf("at the first Parse: counted %+v, want %+v", *s.Stats, want)
	}
	play(t, s, "<1 <2")
	s.checkouts++ // so that the statement is not in use
	s.Prepare(nil, "b", one)
	s.Forget(nil, "b", one)
	if want := (Counters{ParseMessages: 1, BindMessages: 1}); *s.Stats != want {
		t.Errorf("what is answered here is counted as sent: %+v, want %+v", *s.Stats, want)
	}
	s.checkouts++
	s.Use(nil, two)
	if want := (Counters{ParseMessages: 2, BindMessages: 1, CloseMessages: 1, Evictions: 1}); *s.Stats != want {
		t.Errorf("with one too many: counted %+v, want %+v", *s.Stats, want)
	}
}

func TestCountingAllocatesNothing(t *testing.T) {
	var c Counters
	tags := [][]byte{[]byte("SELECT 1\x00"), []byte("INSERT 0 1\x00"), []byte("COPY 1\x00"), []byte("BEGIN\x00")}
	if n := testing.AllocsPerRun(100, func() {
		for _, tag := range tags {
			c.command(tag, false)
			c.sent(wire.Parse)
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
