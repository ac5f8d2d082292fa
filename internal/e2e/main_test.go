// Package e2e tests pgebb as a whole: the program, between clients and a Postgres.
package e2e

import (
	"fmt"
	"testing"
	"time"

	"github.com/pgebb/pgebb/frontend/frontendtest"
	"github.com/pgebb/pgebb/internal/testpg"
)

func TestMain(m *testing.M) { testpg.Main(m) }

// direct is how to log in to Postgres itself as the owner of a database.
func direct(pg *testpg.Server, database string) frontendtest.Login {
	return frontendtest.Login{
		Network: "tcp", Address: fmt.Sprintf("%s:%d", pg.Host, pg.Port), User: database, Password: database, Database: database,
	}
}

// through is how to log in to pgebb as the owner of a database.
func through(p *testpg.Process, database string) frontendtest.Login {
	return frontendtest.Login{Network: "tcp", Address: p.Address(), User: database, Password: database, Database: database}
}

// connect logs in and closes the connection at the end of the test.
func connect(t *testing.T, l frontendtest.Login) *frontendtest.Client {
	t.Helper()
	c, err := frontendtest.Connect(l)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// query runs a query that must not fail and returns the first column.
func query(t *testing.T, c *frontendtest.Client, sql string) []string {
	t.Helper()
	rows, err := c.Query(sql)
	if err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	return rows
}

// console connects to the console.
func console(t *testing.T, p *testpg.Process) *frontendtest.Client {
	t.Helper()
	return connect(t, frontendtest.Login{Network: "tcp", Address: p.Address(), User: "admin", Password: testpg.AdminPassword, Database: "admin"})
}

// epilogue checks what must hold after every test: within two seconds no server is in
// use and nobody waits, and then the whole pool can be used at once; in Postgres there
// are no more sessions than places in the pool.
func epilogue(t *testing.T, pg *testpg.Server, p *testpg.Process, database string, size int) {
	t.Helper()
	eventually(t, 2*time.Second, func() string { return poolBusy(t, p, database) })
	var clients []*frontendtest.Client
	for range size {
		c, err := frontendtest.Connect(through(p, database))
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		clients = append(clients, c)
		query(t, c, "BEGIN")
	}
	pids := map[string]bool{}
	for _, c := range clients {
		pids[query(t, c, "SELECT pg_backend_pid()")[0]] = true
		query(t, c, "COMMIT")
	}
	if len(pids) != size {
		t.Errorf("%d clients in a transaction share %d servers", size, len(pids))
	}
	watcher := connect(t, direct(pg, database))
	eventually(t, 2*time.Second, func() string { // those of clients that were connected directly end some time after these
		n := query(t, watcher, "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()")[0]
		if n != fmt.Sprint(size) {
			return fmt.Sprintf("%s sessions in Postgres, want %d", n, size)
		}
		return ""
	})
}

// poolBusy says what in a pool is not as it is when nothing happens.
func poolBusy(t *testing.T, p *testpg.Process, database string) string {
	t.Helper()
	for _, row := range show(t, p, "SHOW POOLS") {
		if row["database"] == database && (row["sv_active"] != "0" || row["sv_idle_xact"] != "0" || row["cl_waiting"] != "0") {
			return fmt.Sprintf("pool: %v\nservers: %v\nclients: %v", row, show(t, p, "SHOW SERVERS state, transactions, errors, last_sent, last_received, age, remote_pid, client_id"), show(t, p, "SHOW CLIENTS state"))
		}
	}
	return ""
}

// eventually waits until what returns the empty string, and fails after a while.
func eventually(t *testing.T, patience time.Duration, what func() string) {
	t.Helper()
	deadline := time.Now().Add(patience)
	for {
		problem := what()
		if problem == "" {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("after %v: %s", patience, problem)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// show returns the rows of a console command by column name.
func show(t *testing.T, p *testpg.Process, command string) []map[string]string {
	t.Helper()
	c, err := frontendtest.Connect(frontendtest.Login{Network: "tcp", Address: p.Address(), User: "admin", Password: testpg.AdminPassword, Database: "admin"})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	rows, err := c.Table(command)
	if err != nil {
		t.Fatal(err)
	}
	return rows
}
