package e2e

import (
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/pgebb/pgebb/frontend/frontendtest"
	"github.com/pgebb/pgebb/internal/testpg"
	"github.com/pgebb/pgebb/internal/wire"
)

// TestTheNamesOnServersAreOutOfReach: a client that guesses what a statement of another
// is called on servers can neither look at it nor use it nor drop it.
func TestTheNamesOnServersAreOutOfReach(t *testing.T) {
	pg := testpg.ForTest(t)
	database := pg.Database(t)
	p := testpg.Pgebb(t, pg.Options(database, "transaction", 1))
	owner := connect(t, through(p, database))
	if err := owner.Say(&pgproto3.Parse{Name: "s", Query: "SELECT 'mine'"}, &pgproto3.Sync{}); err != nil {
		t.Fatal(err)
	}
	if _, err := owner.Until('Z'); err != nil {
		t.Fatal(err)
	}
	servers := query(t, owner, "SELECT name FROM pg_prepared_statements")
	if len(servers) != 1 || !strings.HasPrefix(servers[0], "__pgebb_") {
		t.Fatalf("on the server are %v", servers)
	}
	name := servers[0]
	for what, say := range map[string][]pgproto3.FrontendMessage{
		"Bind":                  {&pgproto3.Bind{PreparedStatement: name}, &pgproto3.Sync{}},
		"Bind, long":            {&pgproto3.Bind{DestinationPortal: strings.Repeat("p", 3000), PreparedStatement: name}, &pgproto3.Sync{}},
		"Describe":              {&pgproto3.Describe{ObjectType: 'S', Name: name}, &pgproto3.Sync{}},
		"Close":                 {&pgproto3.Close{ObjectType: 'S', Name: name}, &pgproto3.Sync{}},
		"DEALLOCATE":            {&pgproto3.Query{String: "DEALLOCATE " + name}},
		"EXECUTE":               {&pgproto3.Query{String: "/**/ execute \"" + name + "\""}},
		"DEALLOCATE in a Parse": {&pgproto3.Parse{Query: "DEALLOCATE " + name}, &pgproto3.Sync{}},
		"EXECUTE in a Parse":    {&pgproto3.Parse{Name: "x", Query: "EXPLAIN EXECUTE " + name}, &pgproto3.Sync{}},
	} {
		c := connect(t, through(p, database))
		refused(t, c, what, "42939", say...)
		c.Close()
	}
	if err := owner.Say(&pgproto3.Bind{PreparedStatement: "s"}, &pgproto3.Execute{}, &pgproto3.Sync{}); err != nil {
		t.Fatal(err)
	}
	if got, err := owner.Until('Z'); err != nil || frontendtest.Types(got) != "2DCZ" {
		t.Errorf("the owner is told %q, %v", frontendtest.Types(got), err)
	}
	owner.Close()
	epilogue(t, pg, p, database, 1)
}

// refused says something and expects to be told an error and then, as after any error, that
// all is ready again.
func refused(t *testing.T, c *frontendtest.Client, what, code string, say ...pgproto3.FrontendMessage) {
	t.Helper()
	if err := c.Say(say...); err != nil {
		t.Fatal(err)
	}
	all, err := c.Until('Z')
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	if frontendtest.Types(all) != "EZ" || (&frontendtest.Refused{Message: all[0]}).Code() != code {
		t.Errorf("%s is told %q, want an error %s", what, frontendtest.Types(all), code)
	}
}

// TestWhatIsOverALimitIsRefused: a statement for which there is no room is refused when it is
// its turn, undoes its batch as any error does, and costs the client nothing else.
func TestWhatIsOverALimitIsRefused(t *testing.T) {
	pg := testpg.ForTest(t)
	database := pg.Database(t)
	o := pg.Options(database, "transaction", 1)
	o.General += "prepared_statements = \"full\"\nprepared_statements_memory_limit = 20000\nprepared_statements_client_limit = 3\n"
	p := testpg.Pgebb(t, o)
	c := connect(t, through(p, database))
	query(t, c, "CREATE TABLE kept (i int)")
	long := func(n int) string { return "SELECT '" + strings.Repeat("x", n) + "'" }
	if err := c.Say(&pgproto3.Parse{Name: "s", Query: "SELECT 'mine'"}, &pgproto3.Sync{}); err != nil {
		t.Fatal(err)
	}
	if got, err := c.Until('Z'); err != nil || frontendtest.Types(got) != "1Z" {
		t.Fatalf("told %q, %v", frontendtest.Types(got), err)
	}
	for what, say := range map[string][]pgproto3.FrontendMessage{
		"Parse":                     {&pgproto3.Parse{Name: "a", Query: long(19900)}, &pgproto3.Bind{PreparedStatement: "a"}, &pgproto3.Execute{}, &pgproto3.Sync{}},
		"Parse of more than fits":   {&pgproto3.Parse{Name: "a", Query: long(300_000)}, &pgproto3.Bind{PreparedStatement: "a"}, &pgproto3.Sync{}},
		"PREPARE":                   {&pgproto3.Query{String: "PREPARE a AS " + long(19900)}},
		"PREPARE of more than fits": {&pgproto3.Query{String: "PREPARE a AS " + long(300_000)}},
	} {
		refused(t, c, what, "53200", say...)
	}
	if err := c.Say(
		&pgproto3.Parse{Query: "INSERT INTO kept VALUES (1)"}, &pgproto3.Bind{}, &pgproto3.Execute{},
		&pgproto3.Parse{Name: "a", Query: long(19900)}, &pgproto3.Bind{PreparedStatement: "a"}, &pgproto3.Sync{},
		&pgproto3.Bind{PreparedStatement: "s"}, &pgproto3.Execute{}, &pgproto3.Sync{},
	); err != nil {
		t.Fatal(err)
	}
	var types string
	for range 2 {
		all, err := c.Until('Z')
		if err != nil {
			t.Fatal(err)
		}
		types += frontendtest.Types(all)
	}
	if types != "12CEZ2DCZ" {
		t.Errorf("told %q", types)
	}
	if rows := query(t, c, "SELECT i FROM kept"); len(rows) != 0 {
		t.Errorf("of a batch that was refused %v was kept", rows)
	}
	for _, name := range []string{"s1", "s2"} {
		if err := c.Say(&pgproto3.Parse{Name: name, Query: "SELECT 1"}, &pgproto3.Sync{}); err != nil {
			t.Fatal(err)
		}
		if got, err := c.Until('Z'); err != nil || frontendtest.Types(got) != "1Z" {
			t.Fatalf("told %q, %v", frontendtest.Types(got), err)
		}
	}
	refused(t, c, "one too many", "53400", &pgproto3.Parse{Name: "s3", Query: "SELECT 1"}, &pgproto3.Sync{})
	refused(t, c, "one PREPARE too many", "53400", &pgproto3.Query{String: "PREPARE s3 AS SELECT 1"})
	epilogue(t, pg, p, database, 1)
}

// A statement that was prepared by SQL is there also in the middle of a batch, on a server that
// lacks it, and preparing it there does not end the transaction of the batch.
func TestWhatSQLPreparedCanBeBoundWithinABatch(t *testing.T) {
	pg := testpg.ForTest(t)
	database := pg.Database(t)
	o := pg.Options(database, "transaction", 1)
	o.General += "prepared_statements = \"full\"\nprepared_statements_limit = 1\n"
	c := connect(t, through(testpg.Pgebb(t, o), database))
	query(t, c, "CREATE TABLE kept (i int)")
	query(t, c, "PREPARE a (int) AS SELECT $1 + 1")
	query(t, c, "PREPARE b AS SELECT 1/0") // takes the place of a
	if err := c.Say(
		&pgproto3.Parse{Query: "INSERT INTO kept VALUES (1)"}, &pgproto3.Bind{}, &pgproto3.Execute{},
		&pgproto3.Describe{ObjectType: 'S', Name: "a"},
		&pgproto3.Bind{PreparedStatement: "a", Parameters: [][]byte{[]byte("41")}}, &pgproto3.Execute{},
		&pgproto3.Bind{PreparedStatement: "b"}, &pgproto3.Execute{}, &pgproto3.Sync{},
		&pgproto3.Bind{PreparedStatement: "a", Parameters: [][]byte{[]byte("1")}}, &pgproto3.Execute{}, &pgproto3.Sync{},
		&pgproto3.Query{String: "SELECT count(*) FROM kept"},
	); err != nil {
		t.Fatal(err)
	}
	var types string
	var values []string
	for range 3 {
		all, err := c.Until('Z')
		if err != nil {
			t.Fatal(err)
		}
		types += frontendtest.Types(all)
		for _, m := range all {
			if m.Type == wire.DataRow {
				values = append(values, string(m.Body[6:])) // of its only column
			}
		}
	}
	if want := "12CtT2DCEZ2DCZTDCZ"; types != want {
		t.Errorf("told %s, want %s", types, want)
	}
	if want := []string{"42", "2", "0"}; !slices.Equal(values, want) {
		t.Errorf("got %q, want %q", values, want)
	}
}

// What a PREPARE within a batch leaves behind when Postgres refuses it is not in the way of the next.
func TestWhatSQLPreparedCanBeBoundAfterThatHasFailed(t *testing.T) {
	pg := testpg.ForTest(t)
	database := pg.Database(t)
	o := pg.Options(database, "transaction", 1)
	o.General += "prepared_statements = \"full\"\nprepared_statements_limit = 1\n"
	c := connect(t, through(testpg.Pgebb(t, o), database))
	query(t, c, "CREATE TABLE gone (i int)")
	query(t, c, "PREPARE a AS SELECT i FROM gone")
	query(t, c, "PREPARE b AS SELECT 1") // takes the place of a
	query(t, c, "DROP TABLE gone")
	batch := []pgproto3.FrontendMessage{
		&pgproto3.Parse{Query: "SELECT 1"}, &pgproto3.Bind{PreparedStatement: "a"}, &pgproto3.Execute{}, &pgproto3.Sync{},
	}
	say := func(want string) []frontendtest.Message {
		t.Helper()
		if err := c.Say(batch...); err != nil {
			t.Fatal(err)
		}
		got, err := c.Until('Z')
		if err != nil || frontendtest.Types(got) != want {
			t.Fatalf("told %q, %v, want %q", frontendtest.Types(got), err, want)
		}
		return got
	}
	for range 2 {
		if code := wire.ErrorField(say("1EZ")[1].Body, 'C'); string(code) != "42P01" {
			t.Errorf("a statement without its table is an error %s", code)
		}
	}
	query(t, c, "CREATE TABLE gone (i int)")
	say("12CZ")
}
