package e2e

import (
	"fmt"
	"slices"
	"testing"

	"github.com/pgebb/pgebb/frontend/frontendtest"
	"github.com/pgebb/pgebb/internal/wire"
)

// TestTheFirstStatementOfATransactionDecidesOnItsHost with read_write_strategy =
// "aggressive", and the client sees nothing of it.
func TestTheFirstStatementOfATransactionDecidesOnItsHost(t *testing.T) {
	f := startFleet(t, "read_write_strategy = 'aggressive'\nread_write_split = 'prefer_primary'\nmin_pool_size = 0\n", "primary", "replica")
	c, plain := f.connect(), connect(t, direct(f.primary, f.database))
	query(t, c, "CREATE TABLE t (x int)")
	query(t, plain, "CREATE TEMPORARY TABLE t (x int)") // so that each has its own
	f.replicas[0].CaughtUp(t, f.primary)
	const replica = "/* pgdog_role: replica */ "
	for _, script := range [][]string{
		{"BEGIN", replica + "SELECT count(*) FROM t", "SELECT 1", "COMMIT"},
		{"begin work;", "INSERT INTO t VALUES (1)", replica + "SELECT count(*) FROM t", "COMMIT", "SELECT count(*) FROM t"},
		{"START TRANSACTION", "COMMIT", "COMMIT"},
		{"BEGIN", "BEGIN", "ROLLBACK"},
		{"BEGIN", "nonsense", "SELECT 1", "ROLLBACK", "SELECT 1"},
		{"BEGIN", "SAVEPOINT a", "SELECT 1/0", "ROLLBACK TO a", "INSERT INTO t VALUES (2)", "COMMIT"},
		{"BEGIN", ""},
		{"ROLLBACK"},
		{"BEGIN ISOLATION LEVEL SERIALIZABLE", "SHOW transaction_isolation", "COMMIT"},
	} {
		for _, sql := range script {
			if got, want := answersTo(t, c, sql), answersTo(t, plain, sql); !slices.Equal(got, want) {
				t.Errorf("%q: %q is answered with %q, by Postgres with %q", script, sql, got, want)
			}
		}
	}
	query(t, c, "BEGIN")
	if got := f.where(c, replica+"WHERE"); got != 1 {
		t.Errorf("a transaction that begins with a read of a replica is on host %d", got)
	}
	if got := f.where(c, "/* pgdog_role: primary */ WHERE"); got != 1 {
		t.Errorf("and is on host %d later", got)
	}
	query(t, c, "COMMIT")
	query(t, c, "BEGIN")
	query(t, c, "INSERT INTO t VALUES (3)")
	if got := f.where(c, replica+"WHERE"); got != 0 {
		t.Errorf("a transaction that begins with a write is on host %d", got)
	}
	query(t, c, "ROLLBACK")
}

// answersTo runs a query and says what is answered: types, tags, errors and the status.
func answersTo(t *testing.T, c *frontendtest.Client, sql string) (answers []string) {
	t.Helper()
	if err := c.Send(wire.AppendQuery(nil, sql)); err != nil {
		t.Fatal(err)
	}
	messages, err := c.Until('Z')
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range messages {
		switch m.Type {
		case 'E', 'N':
			answers = append(answers, fmt.Sprintf("%c %s", m.Type, wire.ErrorField(m.Body, 'C')))
		default:
			answers = append(answers, fmt.Sprintf("%c %q", m.Type, m.Body))
		}
	}
	return answers
}
