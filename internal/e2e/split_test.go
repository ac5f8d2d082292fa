package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/pgebb/pgebb/frontend/frontendtest"
)

// startSplit starts a primary and a replica that all reads go to.
func startSplit(t *testing.T, general string) *fleet {
	t.Helper()
	f := startFleet(t, "read_write_split = 'exclude_primary'\n"+general, "primary", "replica")
	f.primary.Exec(t, f.database, "CREATE TABLE t AS SELECT 1 AS x", "CREATE SEQUENCE s", "GRANT ALL ON t, s TO public")
	f.replicas[0].CaughtUp(t, f.primary)
	return f
}

// placed are statements that return the port of the server, and whether a replica may run
// them.
var placed = map[string]int{
	"SELECT inet_server_port()":                                                          1,
	"select inet_server_port() from t where x = 1":                                       1,
	"WITH a AS (SELECT 1) SELECT inet_server_port() FROM a":                              1,
	"SELECT inet_server_port(), 'for update', \"x\" FROM t":                              1,
	"VALUES (inet_server_port())":                                                        1,
	"SELECT inet_server_port() FROM t FOR UPDATE":                                        0,
	"SELECT inet_server_port() FROM t FOR SHARE":                                         0,
	"INSERT INTO t VALUES (2) RETURNING inet_server_port()":                              0,
	"UPDATE t SET x = x RETURNING inet_server_port()":                                    0,
	"WITH w AS (INSERT INTO t VALUES (3) RETURNING x) SELECT inet_server_port()":         0,
	"SELECT inet_server_port(), nextval('s')":                                            0,
	"SELECT inet_server_port(), pg_advisory_xact_lock(1)":                                0,
	"SELECT inet_server_port(), pg_current_wal_lsn()":                                    0,
	"SELECT inet_server_port(), set_config('application_name', 'x', false)":              0,
	"/* pgdog_role: primary */ SELECT inet_server_port()":                                0,
	"/* pgdog_role: replica */ SELECT inet_server_port()":                                1,
	"SELECT inet_server_port() FROM t WHERE x IN (" + strings.Repeat("1, ", 2000) + "1)": 1, // parsed elsewhere
}

func TestReadsRunOnTheReplicaAndAllElseOnThePrimary(t *testing.T) {
	f := startSplit(t, "")
	c := f.connect()
	for sql, want := range placed {
		for _, how := range []struct {
			name string
			run  func(*testing.T, *frontendtest.Client, string) string
		}{
			{"simple", func(t *testing.T, c *frontendtest.Client, sql string) string { return query(t, c, sql)[0] }},
			{"extended", func(t *testing.T, c *frontendtest.Client, sql string) string { return extended(t, c, "", sql) }},
			{"named", func(t *testing.T, c *frontendtest.Client, sql string) string { return extended(t, c, "n", sql) }},
		} {
			port := how.run(t, c, sql)
			if port != fmt.Sprint(f.host(want).Port) {
				t.Errorf("%.100s (%s) runs on port %s, want %d", sql, how.name, port, f.host(want).Port)
			}
		}
	}
}

// extended runs a statement by the extended protocol: at once if it has no name, and
// otherwise in a batch behind that in which it is parsed.
func extended(t *testing.T, c *frontendtest.Client, name, sql string) string {
	t.Helper()
	messages := []pgproto3.FrontendMessage{&pgproto3.Parse{Name: name, Query: sql}}
	if name != "" {
		messages = append(messages, &pgproto3.Sync{})
	}
	messages = append(messages, &pgproto3.Bind{PreparedStatement: name}, &pgproto3.Execute{}, &pgproto3.Sync{})
	if name != "" {
		messages = append(messages, &pgproto3.Close{ObjectType: 'S', Name: name}, &pgproto3.Sync{})
	}
	if err := c.Say(messages...); err != nil {
		t.Fatal(err)
	}
	value := ""
	for _, m := range messages {
		if _, sync := m.(*pgproto3.Sync); !sync {
			continue
		}
		answers, err := c.Until('Z')
		if err != nil {
			t.Fatal(err)
		}
		for _, a := range answers {
			switch a.Type {
			case 'D':
				size := int(a.Body[5])
				value = string(a.Body[6 : 6+size])
			case 'E':
				t.Fatalf("%s: %q", sql, a.Body)
			}
		}
	}
	return value
}

func TestABatchRunsOnOneHost(t *testing.T) {
	f := startSplit(t, "")
	c := f.connect()
	const where = "SELECT inet_server_port()"
	for name, test := range map[string]struct {
		statements []string
		want       int
	}{
		"reads":               {[]string{where, "SELECT 1", "SELECT 2"}, 1},
		"a write at the end":  {[]string{where, "SELECT 1", "INSERT INTO t VALUES (4)"}, 0},
		"a write before":      {[]string{"INSERT INTO t VALUES (5)", where}, 0},
		"a transaction":       {[]string{"BEGIN", where, "COMMIT"}, 0},
		"one that only reads": {[]string{"BEGIN READ ONLY", where, "COMMIT"}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			var messages []pgproto3.FrontendMessage
			for _, sql := range test.statements {
				messages = append(messages, &pgproto3.Parse{Query: sql}, &pgproto3.Bind{}, &pgproto3.Execute{})
			}
			if err := c.Say(append(messages, &pgproto3.Sync{})...); err != nil {
				t.Fatal(err)
			}
			answers, err := c.Until('Z')
			if err != nil {
				t.Fatal(err)
			}
			port := ""
			for _, a := range answers {
				switch {
				case a.Type == 'D' && len(a.Body) > 8:
					port = string(a.Body[6:])
				case a.Type == 'E':
					t.Fatalf("an error: %q", a.Body)
				}
			}
			if port != fmt.Sprint(f.host(test.want).Port) {
				t.Errorf("it runs on port %s, want %d", port, f.host(test.want).Port)
			}
		})
	}
}

func TestTransactionsGoToThePrimaryUnlessTheyOnlyRead(t *testing.T) {
	f := startSplit(t, "")
	c := f.connect()
	for begin, want := range map[string]int{
		"BEGIN": 0, "START TRANSACTION": 0, "BEGIN READ WRITE": 0, "BEGIN ISOLATION LEVEL REPEATABLE READ": 0,
		"BEGIN READ ONLY": 1, "START TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY": 1,
		"BEGIN ISOLATION LEVEL SERIALIZABLE READ ONLY": 0, // a replica does not have that
	} {
		query(t, c, begin)
		for range 3 {
			if got := f.where(c, "WHERE"); got != want {
				t.Errorf("after %s a read runs on host %d, want %d", begin, got, want)
			}
		}
		query(t, c, "COMMIT")
		if got := f.where(c, "WHERE"); got != 1 {
			t.Errorf("after the COMMIT a read runs on host %d", got)
		}
	}
	serializable := f.connect("default_transaction_isolation", "serializable")
	if got := f.where(serializable, "WHERE"); got != 0 {
		t.Errorf("a read that is to be serializable runs on host %d", got)
	}
}

func TestWithoutTheParserEverythingGoesToThePrimary(t *testing.T) {
	f := startSplit(t, "query_parser = 'off'\n")
	c := f.connect()
	if got := f.where(c, "WHERE"); got != 0 {
		t.Errorf("a read runs on host %d", got)
	}
	query(t, c, "SET pgdog.role = replica")
	if got := f.where(c, "WHERE"); got != 1 {
		t.Errorf("what asks for a replica runs on host %d", got)
	}
}

// TestAUserThatOnlyReadsHasItsTransactionsOnReplicas with read_only.
func TestAUserThatOnlyReadsHasItsTransactionsOnReplicas(t *testing.T) {
	f := startSplit(t, "")
	f.options.Users = fmt.Sprintf("[[users]]\nname = %q\npassword = %q\ndatabase = %q\nread_only = true\n", f.database, f.database, f.database)
	if err := f.pgebb.Configure(f.options); err != nil {
		t.Fatal(err)
	}
	query(t, console(t, f.pgebb), "RELOAD")
	c := f.connect()
	query(t, c, "BEGIN")
	if got := f.where(c, "WHERE"); got != 1 {
		t.Errorf("its transaction runs on host %d", got)
	}
	query(t, c, "COMMIT")
	if _, err := c.Query("INSERT INTO t VALUES (1)"); code(err) != "25006" {
		t.Errorf("a write is answered with %v", err)
	}
}

// TestPgxReadsAndWritesThroughTheSplit in its default mode, with statements that it prepares
// once and uses again and again.
func TestPgxReadsAndWritesThroughTheSplit(t *testing.T) {
	f := startSplit(t, "")
	ctx := context.Background()
	conn, err := pgx.Connect(ctx, f.pgebb.URL(f.database, f.database, f.database))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(ctx)
	port := func(sql string, args ...any) (port int) {
		t.Helper()
		if err := conn.QueryRow(ctx, sql, args...).Scan(&port); err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
		return port
	}
	for i := range 5 {
		if got := port("SELECT inet_server_port() FROM t WHERE x = $1", 1); got != f.replicas[0].Port {
			t.Errorf("a read runs on port %d", got)
		}
		if got := port("INSERT INTO t VALUES ($1) RETURNING inet_server_port()", i+10); got != f.primary.Port {
			t.Errorf("a write runs on port %d", got)
		}
		tx, err := conn.Begin(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if got := port("SELECT inet_server_port() FROM t WHERE x = $1", 1); got != f.primary.Port {
			t.Errorf("a read in a transaction runs on port %d", got)
		}
		if err := tx.Commit(ctx); err != nil {
			t.Fatal(err)
		}
	}
}
