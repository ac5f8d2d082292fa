package e2e

import (
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/pgebb/pgebb/frontend/frontendtest"
	"github.com/pgebb/pgebb/internal/testpg"
)

// TestConnectionRecovery looks at whether the server of a client that has vanished is
// used again.
func TestConnectionRecovery(t *testing.T) {
	pg := testpg.ForTest(t)
	database := pg.Database(t)
	inQuery := func(c *frontendtest.Client) error {
		return c.Say(&pgproto3.Query{String: "SELECT pg_sleep(0.1)"})
	}
	inTransaction := func(c *frontendtest.Client) error { _, err := c.Query("BEGIN"); return err }
	for _, c := range []struct {
		recovery, where string
		vanish          func(*frontendtest.Client) error
		reused          bool
	}{
		{"recover", "query", inQuery, true},
		{"recover", "transaction", inTransaction, true},
		{"rollback_only", "query", inQuery, false},
		{"rollback_only", "transaction", inTransaction, true},
		{"drop", "query", inQuery, false},
		{"drop", "transaction", inTransaction, false},
	} {
		t.Run(c.recovery+"/"+c.where, func(t *testing.T) {
			o := pg.Options(database, "transaction", 1)
			o.General += fmt.Sprintf("connection_recovery = %q\n", c.recovery)
			p := testpg.Pgebb(t, o)
			client := connect(t, through(p, database))
			before := query(t, client, "SELECT pg_backend_pid()")[0]
			if err := c.vanish(client); err != nil {
				t.Fatal(err)
			}
			client.Reset() // so that it does not look like one that waits for its answer
			eventually(t, 5*time.Second, func() string { return poolBusy(t, p, database) })
			after := query(t, connect(t, through(p, database)), "SELECT pg_backend_pid()")[0]
			if (before == after) != c.reused {
				t.Errorf("server process %s before, %s after", before, after)
			}
		})
	}
}

// TestASessionIsCleanBeforeSomebodyElseGetsIt: in session mode everything is reset.
func TestASessionIsCleanBeforeSomebodyElseGetsIt(t *testing.T) {
	pg := testpg.ForTest(t)
	database := pg.Database(t)
	p := testpg.Pgebb(t, pg.Options(database, "session", 1))
	a := connect(t, through(p, database))
	pid := query(t, a, "SELECT pg_backend_pid()")[0]
	for _, sql := range []string{
		"SET work_mem = '7MB'", "CREATE TEMP TABLE mine (i int)", "PREPARE mine AS SELECT 1", "LISTEN mine", "SELECT pg_advisory_lock(7)",
		"SET application_name = 'mine'",
	} {
		query(t, a, sql)
	}
	a.Close()
	b := connect(t, through(p, database))
	if got := query(t, b, "SELECT pg_backend_pid()")[0]; got != pid {
		t.Fatalf("another server, %s, not %s", got, pid)
	}
	for sql, want := range map[string]string{
		"SELECT current_setting('work_mem') = '7MB'":                "f",
		"SELECT count(*) FROM pg_class WHERE relname = 'mine'":      "0",
		"SELECT count(*) FROM pg_prepared_statements":               "0",
		"SELECT count(*) FROM pg_listening_channels()":              "0",
		"SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'": "0",
		"SELECT current_setting('application_name')":                "",
	} {
		if got := query(t, b, sql)[0]; got != want {
			t.Errorf("%s gives %q, want %q", sql, got, want)
		}
	}
}

// TestANotificationReachesNobodyElse: who listened on a server before is not the next.
func TestANotificationReachesNobodyElse(t *testing.T) {
	pg := testpg.ForTest(t)
	database := pg.Database(t)
	o := pg.Options(database, "transaction", 1)
	o.General += "query_parser = \"off\"\n" // or LISTEN is refused
	p := testpg.Pgebb(t, o)
	a, b := connect(t, through(p, database)), connect(t, through(p, database))
	query(t, a, "LISTEN c")
	query(t, connect(t, direct(pg, database)), "NOTIFY c, 'not for b'")
	for range 3 {
		if err := b.Say(&pgproto3.Query{String: "SELECT pg_sleep(0.02)"}); err != nil {
			t.Fatal(err)
		}
		got, err := b.Until('Z')
		if err != nil || frontendtest.Types(got) != "TDCZ" {
			t.Errorf("b is told %q, %v", frontendtest.Types(got), err)
		}
	}
}
