package e2e

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/pgebb/pgebb/frontend/frontendtest"
	"github.com/pgebb/pgebb/internal/testpg"
)

// bouncer connects to the console that speaks as PgBouncer's.
func bouncer(t *testing.T, p *testpg.Process) *frontendtest.Client {
	t.Helper()
	return connect(t, frontendtest.Login{Network: "tcp", Address: p.Address(), User: "admin", Password: testpg.AdminPassword, Database: "pgbouncer"})
}

// order gives orders on the console that must not fail.
func order(t *testing.T, p *testpg.Process, commands ...string) {
	t.Helper()
	c := console(t, p)
	for _, command := range commands {
		if _, err := c.Query(command); err != nil {
			t.Fatalf("%s: %v", command, err)
		}
	}
}

// row returns the line of a table in which a column has a value.
func row(t *testing.T, rows []map[string]string, column, value string) map[string]string {
	t.Helper()
	for _, r := range rows {
		if r[column] == value {
			return r
		}
	}
	t.Fatalf("no line has %s = %s: %v", column, value, rows)
	return nil
}

func TestPausedClientsWaitUntilResume(t *testing.T) {
	t.Parallel()
	pg := testpg.ForTest(t)
	for _, command := range []string{"PAUSE", "PAUSE DB", "PAUSE DB DB", "MAINTENANCE ON", "MAINTENANCE ON DB"} {
		t.Run(strings.ReplaceAll(command, " ", "-"), func(t *testing.T) {
			database := pg.Database(t)
			o := pg.Options(database, "transaction", 2)
			o.General += "checkout_timeout = 1000\n"
			p := testpg.Pgebb(t, o)
			c, inside := connect(t, through(p, database)), connect(t, through(p, database))
			query(t, c, "SELECT 1")
			query(t, inside, "BEGIN")
			order(t, p, strings.ReplaceAll(command, "DB", database))
			if err := c.Say(&pgproto3.Query{String: "SELECT 'after'"}); err != nil {
				t.Fatal(err)
			}
			query(t, inside, "SELECT 1") // a transaction goes on
			query(t, inside, "COMMIT")
			eventually(t, 5*time.Second, func() string {
				pools := row(t, show(t, p, "SHOW POOLS"), "database", database)
				if pools["paused"] != "t" || pools["cl_waiting"] != "1" || strings.HasPrefix(command, "PAUSE") && pools["sv_total"] != "0" {
					return fmt.Sprint(pools)
				}
				if micros, _ := strconv.Atoi(pools["maxwait_us"]); pools["maxwait"] == "0" || pools["maxwait"] == "1" && micros < 100_000 {
					return "it has not waited for longer than checkout_timeout"
				}
				return ""
			})
			order(t, p, "RESUME")
			got, err := c.Until('Z')
			if err != nil || frontendtest.Types(got) != "TDCZ" {
				t.Errorf("a client that waited is told %q, %v", frontendtest.Types(got), err)
			}
			epilogue(t, pg, p, database, 2)
		})
	}
}

func TestAPauseOfPgBouncersWaitsForTransactions(t *testing.T) {
	pg := testpg.ForTest(t)
	database := pg.Database(t)
	p := testpg.Pgebb(t, pg.Options(database, "transaction", 2))
	c, operator := connect(t, through(p, database)), bouncer(t, p)
	query(t, c, "BEGIN")
	pause := func() {
		t.Helper()
		if err := operator.Say(&pgproto3.Query{String: "PAUSE"}); err != nil {
			t.Fatal(err)
		}
		eventually(t, 5*time.Second, func() string {
			if row(t, show(t, p, "SHOW POOLS"), "database", database)["paused"] != "t" {
				return "nothing is paused"
			}
			return ""
		})
	}
	pause()
	if _, err := frontendtest.Cancel("tcp", p.Address(), operator.PID, operator.Secret); err != nil {
		t.Fatal(err)
	}
	if got, err := operator.Until('Z'); err != nil || frontendtest.Types(got) != "EZ" {
		t.Errorf("a PAUSE that was cancelled is answered with %q, %v", frontendtest.Types(got), err)
	}
	if row(t, show(t, p, "SHOW POOLS"), "database", database)["paused"] != "f" {
		t.Error("a PAUSE that was cancelled goes on")
	}
	pause()
	query(t, c, "COMMIT")
	if got, err := operator.Until('Z'); err != nil || frontendtest.Types(got) != "CZ" {
		t.Errorf("a PAUSE is answered with %q, %v", frontendtest.Types(got), err)
	}
	query(t, operator, "RESUME "+database)
	query(t, c, "SELECT 1")
}

func TestReconnectReplacesServers(t *testing.T) {
	pg := testpg.ForTest(t)
	database := pg.Database(t)
	p := testpg.Pgebb(t, pg.Options(database, "transaction", 1))
	c := connect(t, through(p, database))
	before := query(t, c, "SELECT pg_backend_pid()")[0]
	query(t, c, "BEGIN")
	order(t, p, "RECONNECT "+database)
	if now := query(t, c, "SELECT pg_backend_pid()")[0]; now != before {
		t.Error("a transaction has lost its server")
	}
	query(t, c, "COMMIT")
	order(t, p, "WAIT_CLOSE")
	if now := query(t, c, "SELECT pg_backend_pid()")[0]; now == before {
		t.Error("the server is still the same")
	}
	if _, err := console(t, p).Query("RECONNECT nowhere"); err == nil || !strings.Contains(err.Error(), "no such database: nowhere") {
		t.Errorf("an unknown database is answered with %v", err)
	}
}

func TestKill(t *testing.T) {
	pg := testpg.ForTest(t)
	database := pg.Database(t)
	p := testpg.Pgebb(t, pg.Options(database, "transaction", 4))
	idle, busy := connect(t, through(p, database)), connect(t, through(p, database))
	query(t, idle, "SELECT 1")
	if err := busy.Say(&pgproto3.Query{String: "SELECT pg_sleep(100), 'killed'"}); err != nil {
		t.Fatal(err)
	}
	running(t, pg, database, "%killed%")
	order(t, p, "KILL_CLIENT "+row(t, show(t, p, "SHOW CLIENTS id, state"), "state", "idle")["id"])
	wantFatal(t, idle, "57P01", "administrator command")
	order(t, p, "KILL "+database)
	wantFatal(t, busy, "57P01", "administrator command")
	watcher := connect(t, direct(pg, database))
	eventually(t, 5*time.Second, func() string {
		if n := query(t, watcher, "SELECT count(*) FROM pg_stat_activity WHERE query LIKE '%killed%' AND pid <> pg_backend_pid()")[0]; n != "0" {
			return "the query goes on in Postgres"
		}
		return ""
	})
	watcher.Close()
	order(t, p, "RESUME")
	epilogue(t, pg, p, database, 4)
}

func TestADisabledDatabaseTakesNoNewClients(t *testing.T) {
	pg := testpg.ForTest(t)
	database := pg.Database(t)
	p := testpg.Pgebb(t, pg.Options(database, "transaction", 1))
	c := connect(t, through(p, database))
	order(t, p, "DISABLE "+database)
	query(t, c, "SELECT 1")
	if _, err := frontendtest.Connect(through(p, database)); code(err) != "55000" {
		t.Errorf("a new client is told %v", err)
	}
	if _, err := console(t, p).Query("DISABLE nowhere"); err == nil {
		t.Error("a database that there is not can be disabled")
	}
	order(t, p, "ENABLE "+database)
	connect(t, through(p, database))
}

func TestSetHoldsUntilReload(t *testing.T) {
	pg := testpg.ForTest(t)
	database := pg.Database(t)
	p := testpg.Pgebb(t, pg.Options(database, "transaction", 2))
	want := func(when, want string) {
		t.Helper()
		r := row(t, show(t, p, "SHOW CONFIG"), "name", "query_timeout")
		if got := r["value"] + " from " + r["source"]; got != want {
			t.Errorf("%s query_timeout is %s, want %s", when, got, want)
		}
	}
	order(t, p, "SET query_timeout TO 200")
	want("after SET", "200ms from SET")
	c := connect(t, through(p, database))
	if err := c.Say(&pgproto3.Query{String: "SELECT pg_sleep(100)"}); err != nil {
		t.Fatal(err)
	}
	wantFatal(t, c, "58000", "query_timeout of 200ms")
	order(t, p, "RESET query_timeout")
	want("after RESET", "off from default")
	order(t, p, "SET query_timeout TO 200", "RELOAD")
	want("after RELOAD", "off from default")
	for command, want := range map[string]string{
		"SET port TO 1": "changes at a restart only", "SET query_timout TO 1": `did you mean "query_timeout"?`, "SET query_timeout TO soon": "must be a number of milliseconds",
	} {
		if _, err := console(t, p).Query(command); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s is answered with %v", command, err)
		}
	}
}

func TestStatsUsers(t *testing.T) {
	pg := testpg.ForTest(t)
	database := pg.Database(t)
	o := pg.Options(database, "transaction", 1)
	o.Config += fmt.Sprintf("[admin]\npassword = %q\nstats_users = [%q]\n", testpg.AdminPassword, database)
	o.Users += "[[users]]\nname = \"other\"\npassword = \"other\"\ndatabase = \"" + database + "\"\n"
	p := testpg.Pgebb(t, o)
	for _, name := range []string{"admin", "pgbouncer"} {
		c := connect(t, frontendtest.Login{Network: "tcp", Address: p.Address(), User: database, Password: database, Database: name})
		query(t, c, "SHOW POOLS")
		if _, err := c.Query("PAUSE"); code(err) != "42501" {
			t.Errorf("at %s PAUSE is answered with %v", name, err)
		}
		if _, err := frontendtest.Connect(frontendtest.Login{Network: "tcp", Address: p.Address(), User: "other", Password: "other", Database: name}); code(err) != "28P01" {
			t.Errorf("at %s another user is told %v", name, err)
		}
	}
}

func TestPoolsSayThatPostgresIsDown(t *testing.T) {
	pg, err := testpg.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pg.Stop)
	database := pg.Database(t)
	p := testpg.Pgebb(t, pg.Options(database, "transaction", 2))
	query(t, connect(t, through(p, database)), "SELECT 1")
	before := row(t, show(t, p, "SHOW POOLS"), "database", database)
	if before["healthy"] != "t" || before["errors"] != "0" {
		t.Errorf("while Postgres is there the pool is %v", before)
	}
	pg.Kill()
	eventually(t, 10*time.Second, func() string {
		now := row(t, show(t, p, "SHOW POOLS"), "database", database)
		if n, _ := strconv.Atoi(now["errors"]); now["healthy"] != "f" || now["sv_total"] != "0" || n < 2 {
			return fmt.Sprint(now)
		}
		return ""
	})
	if err := pg.Restart(); err != nil {
		t.Fatal(err)
	}
	eventually(t, 10*time.Second, func() string {
		if now := row(t, show(t, p, "SHOW POOLS"), "database", database); now["healthy"] != "t" {
			return fmt.Sprint(now)
		}
		return ""
	})
}

// TestTheConsoleIsEncryptedAsWell: commands that wait read beside it whether the operator
// has left, which must not disturb the encryption.
func TestTheConsoleIsEncryptedAsWell(t *testing.T) {
	pg := testpg.ForTest(t)
	database := pg.Database(t)
	k := newPKI(t, 0)
	o := pg.Options(database, "transaction", 1)
	o.General += k.general()
	p := testpg.Pgebb(t, o)
	login := k.encrypted(p, database)
	login.User, login.Password, login.Database = "admin", testpg.AdminPassword, "pgbouncer"
	operator := connect(t, login)
	c := connect(t, through(p, database))
	for range 20 {
		query(t, operator, "SHOW POOLS")
	}
	query(t, c, "BEGIN")
	if err := operator.Say(&pgproto3.Query{String: "PAUSE"}, &pgproto3.Query{String: "RESUME"}); err != nil {
		t.Fatal(err)
	}
	eventually(t, 5*time.Second, func() string {
		if row(t, show(t, p, "SHOW POOLS"), "database", database)["paused"] != "t" {
			return "nothing is paused"
		}
		return ""
	})
	query(t, c, "COMMIT")
	for _, want := range []string{"PAUSE", "RESUME"} {
		if got, err := operator.Until('Z'); err != nil || !strings.Contains(got[0].Show(), want) {
			t.Errorf("%s is answered with %v, %v", want, got, err)
		}
	}
	query(t, c, "SELECT 1")
}
