package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/pgebb/pgebb/frontend/frontendtest"
	"github.com/pgebb/pgebb/internal/testpg"
)

// queryLog is a pgebb that logs queries to a file.
type queryLog struct {
	*testpg.Process
	t        *testing.T
	options  testpg.Options
	database string
	path     string
}

func logsQueries(t *testing.T, mode, general string) *queryLog {
	t.Helper()
	pg := testpg.ForTest(t)
	database := pg.Database(t)
	q := &queryLog{t: t, options: pg.Options(database, mode, 1), database: database, path: filepath.Join(t.TempDir(), "queries.log")}
	q.options.General += fmt.Sprintf("query_log = %q\n%s", q.path, general)
	q.Process = testpg.Pgebb(t, q.options)
	return q
}

// client logs in.
func (q *queryLog) client() *frontendtest.Client { return connect(q.t, through(q.Process, q.database)) }

// logged are the lines of a file from the message on, without user, database and address, up
// to the one that ends with the text of a query.
func (q *queryLog) logged(path, last string) []string {
	q.t.Helper()
	var lines []string
	eventually(q.t, 10*time.Second, func() string {
		b, err := os.ReadFile(path)
		if err != nil {
			return err.Error()
		}
		lines = nil
		for _, line := range strings.Split(string(b), "\n") {
			if line == "" {
				continue
			}
			m := regexp.MustCompile(`^time=\S+ client_id=[1-9]\d* user=` + q.database + ` database=` + q.database + ` client=(?:unix|127\.0\.0\.1:\d+) message=(.*)$`).FindStringSubmatch(line)
			if m == nil {
				q.t.Fatalf("the log has %q", line)
			}
			lines = append(lines, m[1])
			if strings.HasSuffix(m[1], fmt.Sprintf("query=%q", last)) {
				return ""
			}
		}
		return fmt.Sprintf("%q is not in the log: %s", last, b)
	})
	return lines
}

// wants checks what is logged, up to a last query that the client sends now.
func (q *queryLog) wants(c *frontendtest.Client, want ...string) {
	q.t.Helper()
	query(q.t, c, "SELECT 'the end'")
	lines := q.logged(q.path, "SELECT 'the end'")
	if got := lines[:len(lines)-1]; strings.Join(got, "\n") != strings.Join(want, "\n") {
		q.t.Errorf("the log has\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// says sends messages and waits for as many answers to a Sync or Query.
func says(t *testing.T, c *frontendtest.Client, answers int, messages ...pgproto3.FrontendMessage) {
	t.Helper()
	if err := c.Say(messages...); err != nil {
		t.Fatal(err)
	}
	for range answers {
		if _, err := c.Until('Z'); err != nil {
			t.Fatal(err)
		}
	}
}

func TestQueriesAreLogged(t *testing.T) {
	q := logsQueries(t, "transaction", "")
	c := q.client()
	query(t, c, "SELECT 1,\n\t'ä'")
	if _, err := c.Query("SELECT nonsense"); err == nil {
		t.Error("no error")
	}
	q.wants(c, `query query="SELECT 1,\n\t'ä'"`, `query query="SELECT nonsense"`)
}

func TestStatementsOfTheExtendedProtocolAreLogged(t *testing.T) {
	execute, sync := &pgproto3.Execute{}, &pgproto3.Sync{}
	value := [][]byte{[]byte("private")}
	for mode, lines := range map[string][]string{
		"transaction": {
			`parse query="SELECT $1"`, `execute`, `parse query="SELECT 2"`, `execute query="SELECT 2"`,
			`parse statement=s query="SELECT 's', $1"`, `execute statement=s query="SELECT 's', $1"`, `execute statement=s query="SELECT 's', $1"`,
			`execute statement=none`, `query query="SELECT 4"`,
		},
		"session": {
			`parse query="SELECT $1"`, `execute`, `parse query="SELECT 2"`, `execute`,
			`parse statement=s query="SELECT 's', $1"`, `execute statement=s`, `execute statement=s`, `execute statement=none`, `query query="SELECT 4"`,
		},
	} {
		t.Run(mode, func(t *testing.T) {
			q := logsQueries(t, mode, "")
			c := q.client()
			bind := &pgproto3.Bind{Parameters: value}
			says(t, c, 1, &pgproto3.Parse{Query: "SELECT $1"}, bind, execute, bind, execute, sync)
			says(t, c, 1, &pgproto3.Parse{Query: "SELECT 2"}, sync)
			says(t, c, 1, &pgproto3.Bind{}, execute, sync)
			says(t, c, 1, &pgproto3.Bind{}, execute, sync)
			named := &pgproto3.Bind{PreparedStatement: "s", Parameters: value}
			says(t, c, 1, &pgproto3.Parse{Name: "s", Query: "SELECT 's', $1"}, sync)
			says(t, c, 1, named, execute, sync)
			says(t, c, 1, named, execute, sync)
			says(t, c, 1, &pgproto3.Bind{PreparedStatement: "none"}, execute, sync)
			says(t, c, 1, &pgproto3.Query{String: "SELECT 4"})
			q.wants(c, lines...)
		})
	}
}

// TestABatchIsLoggedInItsOrder: with what Postgres ignores behind an error, because the
// client has sent it.
func TestABatchIsLoggedInItsOrder(t *testing.T) {
	q := logsQueries(t, "transaction", "")
	c := q.client()
	batch := func(sql string) []pgproto3.FrontendMessage {
		return []pgproto3.FrontendMessage{&pgproto3.Parse{Query: sql}, &pgproto3.Bind{}, &pgproto3.Execute{}}
	}
	says(t, c, 1, append(append(append(batch("SELECT 1"), batch("SELECT 1/0")...), batch("SELECT 3")...), &pgproto3.Sync{})...)
	q.wants(c, `parse query="SELECT 1"`, `parse query="SELECT 1/0"`, `parse query="SELECT 3"`)
}

// TestWhatIsHeldBackIsLoggedOnce: a client that waits for a server, one whose message depends
// on an answer, and one whose server was lost before it was sent anything, all of which give
// pgebb the same input again.
func TestWhatIsHeldBackIsLoggedOnce(t *testing.T) {
	q := logsQueries(t, "transaction", "")
	holder, c := q.client(), q.client()
	query(t, holder, "BEGIN")
	long := strings.Repeat("x", 3<<20)
	if err := c.Say(&pgproto3.Query{String: "SELECT 'waits'"}, &pgproto3.Query{String: "SELECT 'waits, too'"},
		&pgproto3.Parse{Name: "s", Query: "SELECT 'd'"}, &pgproto3.Sync{}, // what depends on it waits for it
		&pgproto3.Parse{Name: "s", Query: "SELECT 'e'"}, &pgproto3.Sync{},
		&pgproto3.Query{String: "DEALLOCATE s"},
		&pgproto3.Bind{PreparedStatement: "s"}, &pgproto3.Sync{},
		&pgproto3.Parse{Name: "l", Query: "SELECT 1 AS " + long}, &pgproto3.Sync{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, 5*time.Second, func() string {
		if row := show(t, q.Process, "SHOW POOLS")[0]; row["cl_waiting"] != "1" {
			return fmt.Sprint(row)
		}
		return ""
	})
	query(t, holder, "COMMIT")
	for range 7 {
		if _, err := c.Until('Z'); err != nil {
			t.Fatal(err)
		}
	}
	query(t, c, "SELECT 'the end'")
	lines := q.logged(q.path, "SELECT 'the end'")
	want := []string{
		`query query="BEGIN"`, `query query="SELECT 'waits'"`, `query query="COMMIT"`, `query query="SELECT 'waits, too'"`,
		`parse statement=s query="SELECT 'd'"`, `parse statement=s query="SELECT 'e'"`, `query query="DEALLOCATE s"`, `execute statement=s`,
	}
	if len(lines) != len(want)+2 || strings.Join(lines[:len(want)], "\n") != strings.Join(want, "\n") {
		t.Errorf("the log has %d lines, the first of which are\n%s\nwant\n%s", len(lines), strings.Join(lines[:min(len(lines), len(want))], "\n"), strings.Join(want, "\n"))
	}
	if !regexp.MustCompile(fmt.Sprintf(`^parse statement=l length=%d query="SELECT 1 AS x{100}x*"$`, len(long)+12)).MatchString(lines[len(lines)-2]) {
		t.Errorf("the long one is logged as %.200s", lines[len(lines)-2])
	}
}

func TestLongTextsAreCutOff(t *testing.T) {
	q := logsQueries(t, "transaction", "")
	c := q.client()
	sql := "SELECT 1" + strings.Repeat(" ", 20000) + "+ 1"
	query(t, c, sql)
	q.wants(c, fmt.Sprintf("query length=%d query=%q", len(sql), sql[:8192]))
}

// TestConstantsOfLongTextsAreNotInTheLog: what is cut off says that one is a password.
func TestConstantsOfLongTextsAreNotInTheLog(t *testing.T) {
	q := logsQueries(t, "transaction", "")
	c := q.client()
	sql := "SELECT 'hunter2'" + strings.Repeat(" ", 20000) + "AS password"
	query(t, c, sql)
	q.wants(c, fmt.Sprintf("query length=%d query=\"SELECT '***'%s\"", len(sql), strings.Repeat(" ", 8192-len("SELECT 'hunter2'"))))
}

func TestPasswordsAreNotInTheLog(t *testing.T) {
	q := logsQueries(t, "transaction", "")
	c := q.client()
	const secret = "hunter2"
	sql := "ALTER ROLE " + q.database + " PASSWORD '" + secret + "'"
	query(t, c, sql)
	says(t, c, 1, &pgproto3.Parse{Name: "s", Query: sql}, &pgproto3.Sync{})
	says(t, c, 1, &pgproto3.Bind{PreparedStatement: "s"}, &pgproto3.Execute{}, &pgproto3.Sync{})
	query(t, c, "DO $x$BEGIN EXECUTE 'ALTER ROLE "+q.database+" PASSWORD ''"+secret+"'''; END$x$")
	query(t, c, "SELECT 'the end'")
	q.logged(q.path, "SELECT 'the end'")
	b, err := os.ReadFile(q.path)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(b), secret) || strings.Count(string(b), `PASSWORD '***'`) != 3 || !strings.Contains(string(b), `"DO '***'"`) {
		t.Errorf("the log has\n%s", b)
	}
}

// reload has a changed configuration read.
func (q *queryLog) reload(old, new string) {
	q.t.Helper()
	q.options.General = strings.Replace(q.options.General, old, new, 1)
	if err := q.Configure(q.options); err != nil {
		q.t.Fatal(err)
	}
	query(q.t, console(q.t, q.Process), "RELOAD")
}

func TestTheQueryLogCanBeRotated(t *testing.T) {
	q := logsQueries(t, "transaction", "")
	c := q.client()
	query(t, c, "SELECT 1")
	rotated := q.path + ".1"
	if err := os.Rename(q.path, rotated); err != nil {
		t.Fatal(err)
	}
	query(t, c, "SELECT 2")
	query(t, console(t, q.Process), "RELOAD")
	q.wants(c)
	if got := q.logged(rotated, "SELECT 2"); len(got) != 2 {
		t.Errorf("what was moved away has %q", got)
	}
	// A file that cannot be opened.
	q.reload(q.path, filepath.Join(q.path, "in a file"))
	query(t, c, "SELECT 3")
	q.logged(q.path, "SELECT 3")
	if log := q.Log(); !strings.Contains(log, "in a file") || !strings.Contains(log, "not a directory") {
		t.Errorf("pgebb does not say what is wrong: %s", log)
	}
	// Off, and on again.
	q.reload(fmt.Sprintf("query_log = %q", filepath.Join(q.path, "in a file")), "")
	query(t, c, "SELECT 4")
	q.reload("pooler_mode", fmt.Sprintf("query_log = %q\npooler_mode", q.path))
	query(t, c, "SELECT 5")
	if got := strings.Join(q.logged(q.path, "SELECT 5"), "\n"); strings.Contains(got, "SELECT 4") {
		t.Errorf("what was sent while the log was off is in it: %s", got)
	}
}

func TestQueriesCanBeLoggedToStandardOutput(t *testing.T) {
	q := logsQueries(t, "transaction", "query_log_stdout = true\n")
	c := q.client()
	query(t, c, "SELECT 'both'")
	q.logged(q.path, "SELECT 'both'")
	eventually(t, 5*time.Second, func() string {
		if log := q.Log(); !strings.Contains(log, `message=query query="SELECT 'both'"`) {
			return log
		}
		return ""
	})
}

// TestAtTheEndAllQueriesAreLogged: what was gathered is written before pgebb ends, however that
// was asked for.
func TestAtTheEndAllQueriesAreLogged(t *testing.T) {
	for _, signal := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM} {
		q := logsQueries(t, "transaction", "")
		c := q.client()
		query(t, c, "SELECT 'the last'")
		c.Close()
		if err := q.Signal(signal); err != nil {
			t.Fatal(err)
		}
		<-q.Done()
		b, err := os.ReadFile(q.path)
		if err != nil || !strings.Contains(string(b), "the last") {
			t.Errorf("after %v the log has %q, %v", signal, b, err)
		}
	}
}

func TestAQueryLogThatCannotBeOpenedIsAnErrorAtTheStart(t *testing.T) {
	path := filepath.Join(t.TempDir(), "not there", "queries.log")
	dir := t.TempDir()
	file := filepath.Join(dir, "pgdog.toml")
	if err := os.WriteFile(file, fmt.Appendf(nil, "[general]\nquery_log = %q\n", path), 0o600); err != nil {
		t.Fatal(err)
	}
	said, err := exec.Command(testpg.Binary(t), "-c", file, "-u", filepath.Join(dir, "users.toml")).CombinedOutput()
	if e, ok := err.(*exec.ExitError); !ok || e.ExitCode() != 1 {
		t.Errorf("it ends with %v", err)
	}
	if !strings.Contains(string(said), path) || !strings.Contains(string(said), "no such file or directory") {
		t.Errorf("it says %s", said)
	}
}
