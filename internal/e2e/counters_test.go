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

// script is what TestStatsCountWhatAScriptDoes says, and what each step adds to the
// counters of SHOW STATS.
var script = []struct {
	name string
	say  []pgproto3.FrontendMessage
	adds map[string]int
}{
	{"a table", []pgproto3.FrontendMessage{&pgproto3.Query{String: "CREATE TABLE t (i int primary key)"}}, map[string]int{"query_count": 1, "xact_count": 1, "server_assignment_count": 1}},
	{"a transaction in one text", []pgproto3.FrontendMessage{&pgproto3.Query{String: "BEGIN; INSERT INTO t SELECT generate_series(1, 10); SELECT 1; COMMIT"}},
		map[string]int{"query_count": 1, "xact_count": 1, "server_assignment_count": 1, "reads": 1, "writes": 1, "rows_inserted": 10}},
	{"BEGIN", []pgproto3.FrontendMessage{&pgproto3.Query{String: "BEGIN"}}, map[string]int{"query_count": 1, "server_assignment_count": 1}},
	{"UPDATE", []pgproto3.FrontendMessage{&pgproto3.Query{String: "UPDATE t SET i = i + 100 WHERE i > 6"}}, map[string]int{"query_count": 1, "writes": 1, "rows_updated": 4}},
	{"an error", []pgproto3.FrontendMessage{&pgproto3.Query{String: "SELECT 1/0"}}, map[string]int{"query_count": 1, "errors": 1}},
	{"ROLLBACK", []pgproto3.FrontendMessage{&pgproto3.Query{String: "ROLLBACK"}}, map[string]int{"query_count": 1, "xact_count": 1}},
	{"a named statement", []pgproto3.FrontendMessage{&pgproto3.Parse{Name: "s", Query: "DELETE FROM t WHERE i < 4"}, &pgproto3.Bind{PreparedStatement: "s"}, &pgproto3.Execute{}, &pgproto3.Sync{}},
		map[string]int{"query_count": 1, "xact_count": 1, "server_assignment_count": 1, "server_parse_count": 1, "bind_count": 1, "writes": 1, "rows_deleted": 3}},
	{"the same again", []pgproto3.FrontendMessage{&pgproto3.Bind{PreparedStatement: "s"}, &pgproto3.Execute{}, &pgproto3.Bind{PreparedStatement: "s"}, &pgproto3.Execute{}, &pgproto3.Sync{}},
		map[string]int{"query_count": 1, "xact_count": 1, "server_assignment_count": 1, "bind_count": 2, "writes": 2}},
	{"a portal that is closed", []pgproto3.FrontendMessage{&pgproto3.Parse{Query: "SELECT i FROM t"}, &pgproto3.Bind{}, &pgproto3.Execute{MaxRows: 2}, &pgproto3.Close{ObjectType: 'P'}, &pgproto3.Sync{}},
		map[string]int{"query_count": 1, "xact_count": 1, "server_assignment_count": 1, "server_parse_count": 1, "bind_count": 1, "close_count": 1}},
	{"COPY in", []pgproto3.FrontendMessage{&pgproto3.Query{String: "COPY t FROM STDIN"}, &pgproto3.CopyData{Data: []byte("51\n52\n")}, &pgproto3.CopyDone{}},
		map[string]int{"query_count": 1, "xact_count": 1, "server_assignment_count": 1, "writes": 1, "rows_inserted": 2}},
	{"COPY out", []pgproto3.FrontendMessage{&pgproto3.Query{String: "COPY t TO STDOUT"}}, map[string]int{"query_count": 1, "xact_count": 1, "server_assignment_count": 1, "reads": 1}},
	{"an empty query", []pgproto3.FrontendMessage{&pgproto3.Query{String: ""}}, map[string]int{"query_count": 1, "xact_count": 1, "server_assignment_count": 1}},
	{"a syntax error in a batch", []pgproto3.FrontendMessage{&pgproto3.Parse{Query: "SELEC"}, &pgproto3.Bind{}, &pgproto3.Execute{}, &pgproto3.Sync{}},
		map[string]int{"query_count": 1, "xact_count": 1, "server_assignment_count": 1, "server_parse_count": 1, "bind_count": 1, "errors": 1}},
}

// TestStatsCountWhatAScriptDoes compares every total of SHOW STATS after each step with
// what the step has done, exactly.
func TestStatsCountWhatAScriptDoes(t *testing.T) {
	pg := testpg.ForTest(t)
	database := pg.Database(t)
	o := pg.Options(database, "transaction", 1)
	o.General += "min_pool_size = 0\n"
	p := testpg.Pgebb(t, o)
	c := connect(t, through(p, database))
	want := totals(t, p)
	if want["connect_count"] != 1 || want["auth_attempts"] != 1 {
		t.Errorf("after a login of one client %d servers were connected, with %d logins", want["connect_count"], want["auth_attempts"])
	}
	for _, step := range script {
		sent := 0
		for _, m := range step.say {
			b, err := m.Encode(nil)
			if err != nil {
				t.Fatal(err)
			}
			sent += len(b)
		}
		if err := c.Say(step.say...); err != nil {
			t.Fatal(err)
		}
		got, err := c.Until('Z')
		if err != nil {
			t.Fatal(err)
		}
		want["received"] += sent
		for _, m := range got {
			want["sent"] += 5 + len(m.Body)
		}
		for name, n := range step.adds {
			want[name] += n
		}
		now := totals(t, p)
		for name := range now {
			if now[name] != want[name] {
				t.Errorf("%s: total_%s is %d, want %d (it is answered with %s)", step.name, name, now[name], want[name], frontendtest.Types(got))
			}
		}
	}
	leaver := connect(t, through(p, database))
	query(t, leaver, "BEGIN")
	query(t, leaver, "CREATE TEMP TABLE left_behind (i int)")
	leaver.Close()
	eventually(t, 5*time.Second, func() string {
		if now := totals(t, p); now["rollbacks"] != 1 || now["cleaned"] != 1 || now["query_count"] != want["query_count"]+2 {
			return fmt.Sprintf("after a client has left its transaction: %v", now)
		}
		return ""
	})
}

// totals are the counters of SHOW STATS that are no times.
func totals(t *testing.T, p *testpg.Process) map[string]int {
	t.Helper()
	all := map[string]int{}
	for name, value := range show(t, p, "SHOW STATS")[0] {
		if name, ok := strings.CutPrefix(name, "total_"); ok && !strings.HasSuffix(name, "_time") {
			n := 0
			if _, err := fmt.Sscan(value, &n); err != nil {
				t.Fatalf("total_%s is %q", name, value)
			}
			all[name] = n
		}
	}
	if len(all) < 15 {
		t.Fatalf("SHOW STATS has only %v", all)
	}
	return all
}
