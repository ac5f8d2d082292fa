package e2e

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/pgebb/pgebb/frontend/frontendtest"
	"github.com/pgebb/pgebb/internal/testpg"
)

// ended waits for pgebb's end and returns its exit code.
func ended(t *testing.T, p *testpg.Process) int {
	t.Helper()
	select {
	case <-p.Done():
		return p.ExitCode()
	case <-time.After(20 * time.Second):
		t.Fatal("pgebb does not end")
		return -1
	}
}

func TestAGracefulShutdownLetsTransactionsFinish(t *testing.T) {
	t.Parallel()
	pg := testpg.ForTest(t)
	database := pg.Database(t)
	for name, shutDown := range map[string]func(t *testing.T, p *testpg.Process){
		"SIGINT": func(_ *testing.T, p *testpg.Process) { _ = p.Signal(syscall.SIGINT) },
		"SHUTDOWN": func(t *testing.T, p *testpg.Process) {
			if _, err := console(t, p).Query("SHUTDOWN"); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := testpg.Pgebb(t, pg.Options(database, "transaction", 4))
			idle, busy, transaction := connect(t, through(p, database)), connect(t, through(p, database)), connect(t, through(p, database))
			query(t, idle, "SELECT 1")
			query(t, transaction, "BEGIN")
			sql, release := locked(t, pg, database, "drain")
			if err := busy.Say(&pgproto3.Query{String: sql}); err != nil {
				t.Fatal(err)
			}
			running(t, pg, database, "%drain%")
			shutDown(t, p)
			wantFatal(t, idle, "57P01", "shutting down")
			if _, err := frontendtest.Connect(through(p, database)); err == nil {
				t.Error("a new client gets in")
			}
			release()
			if got, err := busy.Until('Z'); err != nil || frontendtest.Types(got) != "TDCZ" {
				t.Errorf("a query under way is told %q, %v", frontendtest.Types(got), err)
			}
			wantFatal(t, busy, "57P01", "shutting down")
			query(t, transaction, "SELECT 1")
			query(t, transaction, "COMMIT")
			wantFatal(t, transaction, "57P01", "shutting down")
			if code := ended(t, p); code != 0 {
				t.Errorf("exit code %d", code)
			}
		})
	}
}

func TestAShutdownEndsWhenItsTimeIsUp(t *testing.T) {
	pg := testpg.ForTest(t)
	database := pg.Database(t)
	for name, general := range map[string]string{
		"shutdown_timeout":             "shutdown_timeout = 200\n",
		"shutdown_termination_timeout": "shutdown_timeout = 200\nshutdown_termination_timeout = 5000\n",
	} {
		t.Run(name, func(t *testing.T) {
			o := pg.Options(database, "transaction", 1)
			o.General += general
			p := testpg.Pgebb(t, o)
			c := connect(t, through(p, database))
			if err := c.Say(&pgproto3.Query{String: "SELECT pg_sleep(100)"}); err != nil {
				t.Fatal(err)
			}
			running(t, pg, database, "%pg_sleep(100)%")
			_ = p.Signal(syscall.SIGINT)
			if code := ended(t, p); code != 0 {
				t.Errorf("exit code %d", code)
			}
			got, _ := c.Until('E') // without a termination timeout it is cut off
			if name == "shutdown_termination_timeout" && !strings.Contains(frontendtest.Types(got), "E") {
				t.Errorf("the client is told %q", frontendtest.Types(got))
			}
		})
	}
}

func TestSIGTERMEndsAtOnce(t *testing.T) {
	pg := testpg.ForTest(t)
	database := pg.Database(t)
	p := testpg.Pgebb(t, pg.Options(database, "transaction", 1))
	query(t, connect(t, through(p, database)), "BEGIN")
	_ = p.Signal(syscall.SIGTERM)
	if code := ended(t, p); code != 0 {
		t.Errorf("exit code %d", code)
	}
}

// TestReloadsUnderLoadLoseNothing reloads a hundred times while clients work, every
// other time with another pool size.
func TestReloadsUnderLoadLoseNothing(t *testing.T) {
	t.Parallel()
	pg := testpg.ForTest(t)
	database := pg.Database(t)
	o := pg.Options(database, "transaction", 4)
	p := testpg.Pgebb(t, o)
	var stop atomic.Bool
	var queries atomic.Int64
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			c, err := frontendtest.Connect(through(p, database))
			if err != nil {
				t.Error(err)
				return
			}
			defer c.Close()
			for !stop.Load() {
				if _, err := c.Query("SELECT 1"); err != nil {
					t.Error(err)
					return
				}
				queries.Add(1)
			}
		})
	}
	for i := range 100 {
		other := pg.Options(database, "transaction", 4+i%2)
		if i%10 == 9 {
			other.General += "no_such_key = 1\n" // is refused, and changes nothing
		}
		if err := p.Configure(other); err != nil {
			t.Fatal(err)
		}
		_, err := console(t, p).Query("RELOAD")
		if bad := i%10 == 9; bad != (err != nil) {
			t.Errorf("reload %d: %v", i, err)
		}
	}
	stop.Store(true)
	wg.Wait()
	if err := p.Configure(o); err != nil {
		t.Fatal(err)
	}
	if _, err := console(t, p).Query("RELOAD"); err != nil {
		t.Fatal(err)
	}
	if got := show(t, p, "SHOW STATS")[0]["total_query_count"]; got != fmt.Sprint(queries.Load()) {
		t.Errorf("%s queries are counted, %d were made", got, queries.Load())
	}
}

func TestAReloadAddsAndRemovesDatabases(t *testing.T) {
	pg := testpg.ForTest(t)
	first, second := pg.Database(t), pg.Database(t)
	p := testpg.Pgebb(t, pg.Options(first, "transaction", 1))
	c := connect(t, through(p, first))
	query(t, c, "SELECT 1")
	if _, err := frontendtest.Connect(through(p, second)); code(err) != "28P01" {
		t.Errorf("an unknown user is told %v", err)
	}
	if err := p.Configure(pg.Options(second, "transaction", 1)); err != nil {
		t.Fatal(err)
	}
	if _, err := console(t, p).Query("RELOAD"); err != nil {
		t.Fatal(err)
	}
	query(t, connect(t, through(p, second)), "SELECT 1")
	if _, err := c.Query("SELECT 1"); code(err) != "57P01" {
		t.Errorf("a client whose database was removed is told %v", err)
	}
}

// TestTheCountersAreWhatWasDone: exactly.
func TestTheCountersAreWhatWasDone(t *testing.T) {
	pg := testpg.ForTest(t)
	database := pg.Database(t)
	p := testpg.Pgebb(t, pg.Options(database, "transaction", 1))
	c := connect(t, through(p, database))
	for range 10 {
		query(t, c, "SELECT 1")
	}
	query(t, c, "BEGIN")
	query(t, c, "SELECT 2")
	query(t, c, "COMMIT")
	stats := show(t, p, "SHOW STATS")[0]
	for column, want := range map[string]string{"total_query_count": "13", "total_xact_count": "11", "total_server_assignment_count": "11", "total_errors": "0"} {
		if stats[column] != want {
			t.Errorf("%s is %s, want %s", column, stats[column], want)
		}
	}
	client := show(t, p, "SHOW CLIENTS")[0]
	for column, want := range map[string]string{"queries": "13", "transactions": "11", "state": "idle", "database": database, "user": database} {
		if client[column] != want {
			t.Errorf("SHOW CLIENTS: %s is %s, want %s", column, client[column], want)
		}
	}
	lists := show(t, p, "SHOW LISTS")[0]
	if lists["used_clients"] != "1" || lists["used_servers"] != "1" || lists["pools"] != "1" {
		t.Errorf("SHOW LISTS: %v", lists)
	}
}
