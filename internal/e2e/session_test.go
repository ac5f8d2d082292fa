package e2e

import (
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/pgebb/pgebb/frontend/frontendtest"
	"github.com/pgebb/pgebb/internal/testpg"
)

// TestListenIsRefusedWhereNotificationsWouldNotCome: the refusal comes in its turn, and the
// client goes on.
func TestListenIsRefusedWhereNotificationsWouldNotCome(t *testing.T) {
	pg := testpg.ForTest(t)
	database := pg.Database(t)
	p := testpg.Pgebb(t, pg.Options(database, "transaction", 1))
	c := connect(t, through(p, database))
	refused(t, c, "Query", "0A000", &pgproto3.Query{String: "/* x */ listen c"})
	refused(t, c, "Parse", "0A000", &pgproto3.Parse{Query: "LISTEN c"}, &pgproto3.Bind{}, &pgproto3.Execute{}, &pgproto3.Sync{})
	refused(t, c, "several", "0A000", &pgproto3.Query{String: "SELECT 1; LISTEN c"})
	query(t, c, "NOTIFY c")
	query(t, c, "UNLISTEN *")
	if err := c.Say(&pgproto3.Query{String: "SELECT 'before'"}, &pgproto3.Query{String: "LISTEN c"}, &pgproto3.Query{String: "SELECT 'behind'"}); err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{"TDCZ", "EZ", "TDCZ"} {
		if got, err := c.Until('Z'); err != nil || frontendtest.Types(got) != want {
			t.Errorf("answer %d is %q, %v; want %q", i, frontendtest.Types(got), err, want)
		}
	}
	epilogue(t, pg, p, database, 1)
}

// TestOnlyWhatIsNeededIsCleaned: a transaction that leaves nothing in its session costs no
// statement more than itself.
func TestOnlyWhatIsNeededIsCleaned(t *testing.T) {
	pg := testpg.ForTest(t)
	database := pg.Database(t)
	p := testpg.Pgebb(t, pg.Options(database, "transaction", 1))
	c := connect(t, through(p, database))
	cleaned := func() string { return show(t, p, "SHOW STATS")[0]["total_cleaned"] }
	for _, sql := range []string{
		"CREATE TABLE temp (hold int, share int)", "INSERT INTO temp (hold, share) VALUES (1, 2)", "SELECT hold AS update FROM temp", "BEGIN; SET LOCAL lock_timeout = 5; COMMIT",
		"SELECT set_config('my.x', 'y', true)", "BEGIN; DECLARE c CURSOR FOR SELECT 1; FETCH c; COMMIT", "CREATE TEMP TABLE t (i int) ON COMMIT DROP",
		"SELECT pg_advisory_xact_lock(1)", "BEGIN; SET TRANSACTION READ ONLY; COMMIT", "SET lock_timeout = 7",
	} {
		query(t, c, sql)
		if n := cleaned(); n != "0" {
			t.Errorf("%s: cleaned are %s", sql, n)
		}
	}
	query(t, c, "CREATE TEMP TABLE t (i int)")
	if n := cleaned(); n != "1" {
		t.Errorf("cleaned are %s", n)
	}
}

// TestWhoHoldsALockKeepsItsServer, and the console says so.
func TestWhoHoldsALockKeepsItsServer(t *testing.T) {
	pg := testpg.ForTest(t)
	database := pg.Database(t)
	p := testpg.Pgebb(t, pg.Options(database, "transaction", 2))
	c, other := connect(t, through(p, database)), connect(t, through(p, database))
	locked := func() string {
		for _, row := range show(t, p, "SHOW CLIENTS") {
			if row["locked"] == "t" {
				return "t"
			}
		}
		return "f"
	}
	query(t, c, "SELECT pg_advisory_lock(1)")
	pid := query(t, c, "SELECT pg_backend_pid()")[0]
	for range 5 {
		query(t, other, "SELECT 1")
		if again := query(t, c, "SELECT pg_backend_pid()")[0]; again != pid {
			t.Fatalf("the server was %s and is %s", pid, again)
		}
	}
	if locked() != "t" {
		t.Error("SHOW CLIENTS does not say that the client is locked")
	}
	query(t, c, "SELECT pg_advisory_unlock(1)")
	if locked() != "f" {
		t.Error("SHOW CLIENTS says that the client is still locked")
	}
}

// TestWhatIsTooLongToBeJudgedIsTakenForAnything: a setting at the end of a long text follows
// its client all the same, and nobody else gets it.
func TestWhatIsTooLongToBeJudgedIsTakenForAnything(t *testing.T) {
	pg := testpg.ForTest(t)
	database := pg.Database(t)
	p := testpg.Pgebb(t, pg.Options(database, "transaction", 1))
	a, b := connect(t, through(p, database)), connect(t, through(p, database))
	for i, size := range []int{100, 5_000, 40_000, 300_000} {
		want := fmt.Sprintf("%ds", i+1)
		query(t, a, "SELECT '"+strings.Repeat("x", size)+"'; SET statement_timeout = '"+want+"'; CREATE TEMP TABLE t (i int)")
		if got := query(t, b, "SHOW statement_timeout")[0]; got != "0" {
			t.Errorf("%d bytes: the other client's statement_timeout is %s", size, got)
		}
		if _, err := b.Query("SELECT * FROM t"); err == nil {
			t.Errorf("%d bytes: the other client finds the temporary table", size)
		}
		if got := query(t, a, "SHOW statement_timeout")[0]; got != want {
			t.Errorf("%d bytes: the client's statement_timeout is %s, want %s", size, got, want)
		}
	}
}

// TestWithoutTheParserSettingsFollowToo, as far as Postgres says what it has done.
func TestWithoutTheParserSettingsFollowToo(t *testing.T) {
	pg := testpg.ForTest(t)
	database := pg.Database(t)
	o := pg.Options(database, "transaction", 1)
	o.General += "query_parser = \"off\"\n"
	p := testpg.Pgebb(t, o)
	a, b := connect(t, through(p, database)), connect(t, through(p, database))
	query(t, a, "SET statement_timeout = '7s'; SET my.app = 'x'; PREPARE p AS SELECT 1")
	if got := query(t, b, "SELECT current_setting('statement_timeout') || coalesce(current_setting('my.app', true), '')"); got[0] != "0" {
		t.Errorf("the other client finds %s", got)
	}
	if _, err := b.Query("EXECUTE p"); err == nil {
		t.Error("the other client finds the prepared statement")
	}
	if got := query(t, a, "SELECT current_setting('statement_timeout')"); got[0] != "7s" {
		t.Errorf("the client has %s", got)
	}
}

// TestTheQueryCacheCanBeLookedAt and reset.
func TestTheQueryCacheCanBeLookedAt(t *testing.T) {
	pg := testpg.ForTest(t)
	database := pg.Database(t)
	o := pg.Options(database, "transaction", 1)
	o.General += "query_parser = \"on\"\n"
	p := testpg.Pgebb(t, o)
	c := connect(t, through(p, database))
	for i := range 3 {
		query(t, c, fmt.Sprintf("SELECT %d + 40", i))
	}
	rows := show(t, p, "SHOW QUERY_CACHE")
	if len(rows) != 1 || rows[0]["query"] != "SELECT 1 + 1" || rows[0]["hits"] != "2" {
		t.Errorf("SHOW QUERY_CACHE has %v", rows)
	}
	show(t, p, "RESET QUERY_CACHE")
	if rows := show(t, p, "SHOW QUERY_CACHE"); len(rows) != 0 {
		t.Errorf("after a reset it has %v", rows)
	}
}

// TestQuerySizeLimit, both actions.
func TestQuerySizeLimit(t *testing.T) {
	pg := testpg.ForTest(t)
	database := pg.Database(t)
	for action, refused := range map[string]bool{"warn": false, "block": true} {
		o := pg.Options(database, "transaction", 1)
		o.General += fmt.Sprintf("query_size_limit = 100\nquery_size_limit_action = %q\n", action)
		p := testpg.Pgebb(t, o)
		for _, size := range []int{92, 93, 100_000} { // 8 characters are around it
			c := connect(t, through(p, database))
			_, err := c.Query("SELECT '" + strings.Repeat("x", size-1) + "'")
			if tooLong := size > 92; (err != nil) != (tooLong && refused) || err != nil && !strings.Contains(err.Error(), "54000") {
				t.Errorf("%s: a text of %d bytes: %v", action, size+8, err)
			}
		}
	}
}
