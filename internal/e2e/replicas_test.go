package e2e

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/pgebb/pgebb/frontend/frontendtest"
	"github.com/pgebb/pgebb/internal/testpg"
	"github.com/pgebb/pgebb/internal/wire"
)

// fleet is a primary and its replicas, and a pgebb before them.
type fleet struct {
	t        *testing.T
	primary  *testpg.Server
	replicas []*testpg.Server
	database string
	pgebb    *testpg.Process
	options  testpg.Options
}

// startFleet starts it with the given roles, the primary's first, and lines for [general].
func startFleet(t *testing.T, general string, roles ...string) *fleet {
	t.Helper()
	f := &fleet{t: t}
	f.primary, f.replicas = testpg.Pair(t, len(roles)-1)
	f.database = f.primary.Database(t)
	f.options = f.primary.Options(f.database, "transaction", 4)
	f.options.General += general
	f.options.Config = ""
	for i, role := range roles {
		f.options.Config += fmt.Sprintf("[[databases]]\nname = %q\nhost = %q\nport = %d\nrole = %q\n", f.database, f.primary.Host, f.host(i).Port, role)
	}
	for _, r := range f.replicas {
		r.CaughtUp(t, f.primary)
	}
	f.pgebb = testpg.Pgebb(t, f.options)
	return f
}

// host is the primary for 0, and a replica for what follows.
func (f *fleet) host(i int) *testpg.Server {
	if i == 0 {
		return f.primary
	}
	return f.replicas[i-1]
}

// connect logs a client in, with run-time parameters.
func (f *fleet) connect(params ...string) *frontendtest.Client {
	f.t.Helper()
	l := through(f.pgebb, f.database)
	l.Params = params
	return connect(f.t, l)
}

// where runs a query that says which server it runs on, and returns that: 0 for the primary.
func (f *fleet) where(c *frontendtest.Client, sql string) int {
	f.t.Helper()
	port := query(f.t, c, strings.Replace(sql, "WHERE", "SELECT inet_server_port()", 1))[0]
	for i := range len(f.replicas) + 1 {
		if fmt.Sprint(f.host(i).Port) == port {
			return i
		}
	}
	f.t.Fatalf("%s runs on port %s", sql, port)
	return -1
}

func TestAClientChoosesARoleItself(t *testing.T) {
	f := startFleet(t, "query_parser = \"off\"\n", "primary", "replica")
	c := f.connect()
	for sql, want := range map[string]int{
		"/* pgdog_role: replica */ WHERE":             1,
		"/* pgdog_role: primary */ WHERE":             0,
		"WHERE /* pgdog_role: replica */":             1,
		"WHERE /* app:x, pgdog_role : REPLICA, b */;": 1,
		"/* pgdog_role: other */ WHERE":               0,
		"/* pgdog_role */ WHERE":                      0,
		"/* x */ WHERE /* pgdog_role: replica */ + 0": 0, // neither at the beginning nor at the end
	} {
		for range 3 {
			if got := f.where(c, sql); got != want {
				t.Errorf("%s runs on host %d, want %d", sql, got, want)
			}
		}
	}
	replica := f.connect("pgdog.role", "replica")
	if got := f.where(replica, "WHERE"); got != 1 {
		t.Errorf("with the start-up parameter pgdog.role = replica it runs on host %d", got)
	}
	if _, err := replica.Query("CREATE TABLE t (x int)"); code(err) != "25006" {
		t.Errorf("a write on a replica is answered with %v", err)
	}
	if got := f.where(replica, "/* pgdog_role: primary */ WHERE"); got != 0 {
		t.Errorf("a comment does not override the parameter: host %d", got)
	}
	query(t, c, "SET pgdog.role TO 'replica'")
	if got := f.where(c, "WHERE"); got != 1 {
		t.Errorf("after SET pgdog.role it runs on host %d", got)
	}
	l := through(f.pgebb, f.database)
	l.Params = []string{"options", "-c pgdog.role=leader"}
	if _, err := frontendtest.Connect(l); code(err) != "22023" {
		t.Errorf("a role that there is not is answered with %v", err)
	}
}

func TestReadsAreSplitFromWrites(t *testing.T) {
	f := startFleet(t, "read_write_split = \"exclude_primary\"\n", "primary", "replica")
	c := f.connect()
	for sql, want := range map[string]int{
		"WHERE":                                        1,
		"WITH x AS (VALUES (1)) WHERE FROM x":          1,
		"WHERE AS update":                              1,
		"WHERE; SELECT 1":                              1,
		"WHERE, pg_advisory_xact_lock(1)":              0,
		"WHERE, set_config('my.app', 'x', true)":       0,
		"/* pgdog_role: primary */ WHERE":              0,
		"BEGIN READ ONLY; WHERE; COMMIT":               1,
		"BEGIN; WHERE; COMMIT":                         0,
		"WITH x AS (DELETE FROM split) WHERE":          0,
		"WHERE FROM (SELECT * FROM split FOR SHARE) x": 0,
	} {
		query(t, c, "DROP TABLE IF EXISTS split; CREATE TABLE split (i int); INSERT INTO split VALUES (1)")
		f.replicas[0].CaughtUp(t, f.primary)
		for range 3 {
			if strings.Contains(sql, "split FOR") {
				query(t, c, "INSERT INTO split VALUES (1)")
			}
			if got := f.where(c, sql); got != want {
				t.Errorf("%s runs on host %d, want %d", sql, got, want)
			}
		}
	}
}

func TestATransactionStaysWhereItBegan(t *testing.T) {
	f := startFleet(t, "", "primary", "replica")
	c := f.connect()
	query(t, c, "BEGIN")
	for range 5 {
		if got := f.where(c, "/* pgdog_role: replica */ WHERE"); got != 0 {
			t.Errorf("inside of a transaction on the primary a read runs on host %d", got)
		}
	}
	query(t, c, "COMMIT")
	query(t, c, "/* pgdog_role: replica */ BEGIN")
	for range 5 {
		if got := f.where(c, "WHERE"); got != 1 {
			t.Errorf("inside of a transaction on the replica a query runs on host %d", got)
		}
	}
	query(t, c, "COMMIT")
}

// TestARequestBehindAReadGoesWhereItMust though the client does not wait for the answer to
// the read.
func TestARequestBehindAReadGoesWhereItMust(t *testing.T) {
	f := startFleet(t, "", "primary", "replica")
	c := f.connect()
	query(t, c, "CREATE TABLE t (x int)")
	const replica = "/* pgdog_role: replica */ "
	for _, test := range []struct{ statements, want []string }{
		{
			[]string{replica + "SELECT pg_is_in_recovery()", replica + "SELECT pg_is_in_recovery()", "INSERT INTO t VALUES (1)", "SELECT pg_is_in_recovery()"},
			[]string{"t", "SELECT 1", "t", "SELECT 1", "INSERT 0 1", "f", "SELECT 1"},
		},
		{ // a transaction ends where it began
			[]string{replica + "BEGIN", "SELECT pg_is_in_recovery()", "COMMIT", "INSERT INTO t VALUES (2)"},
			[]string{"BEGIN", "t", "SELECT 1", "COMMIT", "INSERT 0 1"},
		},
		{ // who has a server of the primary goes on with it
			[]string{"INSERT INTO t VALUES (3)", replica + "SELECT pg_is_in_recovery()"},
			[]string{"INSERT 0 1", "f", "SELECT 1"},
		},
	} {
		if got := pipeline(t, c, test.statements); !slices.Equal(got, test.want) {
			t.Errorf("the answers to %q are %q, want %q", test.statements, got, test.want)
		}
	}
	if got := query(t, c, "/* pgdog_role: primary */ SELECT count(*) FROM t")[0]; got != "3" {
		t.Errorf("there are %s rows", got)
	}
}

// pipeline sends statements at once, and returns the first columns and the tags of the
// answers.
func pipeline(t *testing.T, c *frontendtest.Client, statements []string) (got []string) {
	t.Helper()
	var b []byte
	for _, sql := range statements {
		b = wire.AppendQuery(b, sql)
	}
	if err := c.Send(b); err != nil {
		t.Fatal(err)
	}
	for range statements {
		messages, err := c.Until('Z')
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range messages {
			switch m.Type {
			case 'D':
				got = append(got, string(m.Body[6:]))
			case 'C', 'E':
				got = append(got, strings.TrimRight(string(m.Body), "\x00"))
			}
		}
	}
	return got
}

// TestAServerThatGivesNoSignOfLifeIsReplaced before a client gets it.
func TestAServerThatGivesNoSignOfLifeIsReplaced(t *testing.T) {
	pg := testpg.ForTest(t)
	database := pg.Database(t)
	o := pg.Options(database, "transaction", 2)
	o.General += "healthcheck_interval = 0\nhealthcheck_timeout = 200\nmin_pool_size = 0\n"
	c := connect(t, through(testpg.Pgebb(t, o), database))
	pid := query(t, c, "SELECT pg_backend_pid()")[0]
	if again := query(t, c, "SELECT pg_backend_pid()")[0]; again != pid {
		t.Fatalf("a server that is well is replaced")
	}
	process, err := strconv.Atoi(pid)
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(process, syscall.SIGSTOP); err != nil {
		t.Skipf("only who may stop Postgres's processes can test this: %v", err)
	}
	defer func() { _ = syscall.Kill(process, syscall.SIGCONT) }() // it may have ended
	if other := query(t, c, "SELECT pg_backend_pid()")[0]; other == pid {
		t.Error("a server that is stopped has answered")
	}
}
