package e2e

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/pgebb/pgebb/frontend/frontendtest"
	"github.com/pgebb/pgebb/internal/testpg"
)

// TestCustomParametersFollowTheirClientHoweverManyThereAre: Postgres does not list them, so all
// that are set must be known by name.
func TestCustomParametersFollowTheirClientHoweverManyThereAre(t *testing.T) {
	t.Parallel()
	pg := testpg.ForTest(t)
	database := pg.Database(t)
	p := testpg.Pgebb(t, pg.Options(database, "transaction", 2))
	for _, n := range []int{1, 16, 17, 40, 400, 3000} {
		for _, how := range []string{"one transaction", "one query", "set_config", "a DO"} {
			if n > 400 && how != "one transaction" {
				break // a text of that length is not waited for, see docs/architecture.md
			}
			c, blocker := connect(t, through(p, database)), connect(t, through(p, database))
			prefix := fmt.Sprintf("n%d_%s", n, strings.ReplaceAll(how, " ", "_"))
			var sets, calls []string
			for i := range n {
				sets = append(sets, fmt.Sprintf("SET %s.n%d = 'v%d'", prefix, i, i))
				calls = append(calls, fmt.Sprintf("SELECT set_config('%s.n%d', 'v%d', false)", prefix, i, i))
			}
			query(t, c, "SET keep.me = 'kept'")
			switch how {
			case "one query":
				query(t, c, strings.Join(sets, "; "))
			case "one transaction":
				query(t, c, "BEGIN")
				for _, sql := range sets {
					query(t, c, sql)
				}
				query(t, c, "COMMIT")
			case "set_config":
				query(t, c, strings.Join(calls, "; "))
			case "a DO":
				query(t, c, "DO $$BEGIN "+strings.Join(sets, "; ")+"; END$$")
			}
			query(t, blocker, "BEGIN") // on the server that the client has had
			got := query(t, c, fmt.Sprintf("SELECT count(*) FROM generate_series(0, %d) i WHERE current_setting('%s.n' || i, true) = 'v' || i", n-1, prefix))
			if kept := query(t, c, "SELECT current_setting('keep.me', true)"); got[0] != fmt.Sprint(n) || kept[0] != "kept" {
				t.Errorf("%s: of %d there are %s, one from before is %q", prefix, n, got, kept)
			}
			if got := query(t, blocker, fmt.Sprintf("SELECT concat(current_setting('%s.n0', true))", prefix)); got[0] != "" {
				t.Errorf("%s: somebody else has %q", prefix, got)
			}
			query(t, blocker, "ROLLBACK")
			c.Close()
			blocker.Close()
		}
	}
	epilogue(t, pg, p, database, 2)
}

// TestLongParametersFollowTheirClient, up to a limit that the client is told.
func TestLongParametersFollowTheirClient(t *testing.T) {
	pg := testpg.ForTest(t)
	database := pg.Database(t)
	p := testpg.Pgebb(t, pg.Options(database, "transaction", 2))
	for _, size := range []int{3000, 17_000, 70_000, 1_000_000} {
		c, blocker := connect(t, through(p, database)), connect(t, through(p, database))
		query(t, c, fmt.Sprintf("SELECT set_config('my.long', repeat('x', %d), false) IS NULL", size))
		query(t, blocker, "BEGIN")
		if got := query(t, c, "SELECT length(current_setting('my.long', true))"); got[0] != fmt.Sprint(size) {
			t.Errorf("one of %d characters has %q", size, got)
		}
		query(t, blocker, "ROLLBACK")
		c.Close()
		blocker.Close()
	}
	c := connect(t, through(p, database))
	if err := c.Say(&pgproto3.Query{String: "SELECT set_config('my.long', repeat('x', 2000000), false) IS NULL"}); err != nil {
		t.Fatal(err)
	}
	got, err := c.Until('E')
	if err != nil {
		t.Fatal(err)
	}
	refusal := &frontendtest.Refused{Message: got[len(got)-1]}
	if refusal.Code() != "54000" || !strings.Contains(refusal.Error(), "1048576") {
		t.Errorf("one that is too long gets %v", refusal)
	}
	epilogue(t, pg, p, database, 2)
}

// TestAParameterThatNobodyHasSetIsNotThere: being looked for does not make it.
func TestAParameterThatNobodyHasSetIsNotThere(t *testing.T) {
	pg := testpg.ForTest(t)
	database := pg.Database(t)
	p := testpg.Pgebb(t, pg.Options(database, "transaction", 1))
	c := connect(t, through(p, database))
	query(t, c, "DO $$BEGIN IF false THEN SET never.x = 1; END IF; END$$")
	if got := query(t, c, "SELECT current_setting('never.x', true) IS NULL"); got[0] != "t" {
		t.Errorf("it is NULL: %q", got)
	}
	epilogue(t, pg, p, database, 1)
}

// TestWhatAPreparedTextDoesToItsSessionIsFollowed when SQL's EXECUTE carries it out, in a later
// transaction and maybe on another server than where it was prepared.
func TestWhatAPreparedTextDoesToItsSessionIsFollowed(t *testing.T) {
	pg := testpg.ForTest(t)
	database := pg.Database(t)
	o := pg.Options(database, "transaction", 2)
	o.General += "prepared_statements = \"full\"\n"
	p := testpg.Pgebb(t, o)
	c, other := connect(t, through(p, database)), connect(t, through(p, database))
	query(t, c, "PREPARE s(text) AS SELECT set_config('prepared.a', $1, false)")
	query(t, c, "PREPARE w(text) AS SELECT set_config('work_mem', $1, false)")
	for i, sql := range []string{"EXECUTE s('v0')", "EXPLAIN ANALYZE EXECUTE s('v1')", "EXECUTE s('v2'); SELECT 1"} {
		query(t, c, sql)
		if got := query(t, other, "SELECT concat(current_setting('prepared.a', true))"); got[0] != "" {
			t.Errorf("%s: somebody else has %q", sql, got)
		}
		query(t, other, "BEGIN") // on the server that the client has had
		if got := query(t, c, "SELECT current_setting('prepared.a', true)"); got[0] != fmt.Sprint("v", i) {
			t.Errorf("%s: it is %q", sql, got)
		}
		query(t, other, "ROLLBACK")
	}
	query(t, c, "EXECUTE w('7777kB')")
	if got, others := query(t, c, "SHOW work_mem"), query(t, other, "SHOW work_mem"); got[0] != "7777kB" || others[0] == got[0] {
		t.Errorf("work_mem is %q, and for others %q", got, others)
	}
	query(t, c, "PREPARE l AS SELECT pg_advisory_lock(78)")
	query(t, c, "EXECUTE l")
	query(t, other, "SELECT 1")
	if got := query(t, other, "SELECT pg_try_advisory_lock(78)"); got[0] != "f" {
		t.Error("a lock that a client holds is somebody else's as well")
	}
	c.Close()
	eventually(t, 5*time.Second, func() string {
		if got := query(t, other, "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'"); got[0] != "0" {
			return "the lock of a client that has left is held"
		}
		return ""
	})
	other.Close()
	epilogue(t, pg, p, database, 2)
}
