package e2e

import (
	"fmt"
	"testing"
	"time"

	"github.com/pgebb/pgebb/frontend/frontendtest"
)

// TestReadsGoOnWhileAReplicaIsKilledAndComeBackToIt: who reads at the moment is told; all
// others read elsewhere.
func TestReadsGoOnWhileAReplicaIsKilledAndComeBackToIt(t *testing.T) {
	f := startFleet(t, "ban_timeout = 500\nread_write_split = 'exclude_primary'\nload_balancing_strategy = 'round_robin'\n", "primary", "replica", "replica")
	c := f.connect("pgdog.role", "replica")
	seen := map[int]bool{}
	for range 10 {
		seen[f.where(c, "WHERE")] = true
	}
	if len(seen) != 2 || seen[0] {
		t.Fatalf("reads run on hosts %v", seen)
	}
	busy := f.connect("pgdog.role", "replica")
	for f.where(busy, "WHERE") != 1 {
	}
	query(t, busy, "BEGIN")
	inside := f.where(busy, "WHERE")

	f.host(inside).Kill()
	if _, err := busy.Query("SELECT 1"); err == nil {
		t.Error("a transaction goes on without its server")
	}
	other := 3 - inside
	for range 20 {
		if got := f.where(c, "WHERE"); got != other {
			t.Errorf("a read runs on host %d, which is dead", got)
		}
	}
	if err := f.host(inside).Restart(); err != nil {
		t.Fatal(err)
	}
	eventually(t, 20*time.Second, func() string {
		if got := f.where(c, "WHERE"); got != inside {
			return fmt.Sprintf("reads run on host %d only", got)
		}
		return ""
	})
}

// TestAfterAPromotionTheSameClientWritesToTheNewPrimary without a restart or a reload, also
// when the old primary comes back as if nothing had happened.
func TestAfterAPromotionTheSameClientWritesToTheNewPrimary(t *testing.T) {
	f := startFleet(t, "checkout_timeout = 30000\nlsn_check_interval = 200\n", "auto", "auto")
	f.primary.Exec(t, f.database, "CREATE TABLE t (x int)", "GRANT ALL ON t TO public")
	c, waiting := f.connect(), f.connect()
	query(t, c, "INSERT INTO t VALUES (1)")
	f.replicas[0].CaughtUp(t, f.primary)

	f.primary.Kill()
	done := make(chan error)
	go func() {
		_, err := waiting.Query("INSERT INTO t VALUES (2)")
		done <- err
	}()
	eventually(t, 10*time.Second, func() string {
		for _, row := range show(t, f.pgebb, "SHOW POOLS") {
			if row["cl_waiting"] == "1" {
				return ""
			}
		}
		return "nobody waits for the primary"
	})
	f.replicas[0].Promote(t)
	if err := <-done; err != nil {
		t.Errorf("who waited for a primary is told %v", err)
	}
	if got := f.where(c, "WHERE"); got != 1 {
		t.Errorf("after the promotion the client is on host %d", got)
	}
	query(t, c, "INSERT INTO t VALUES (3)")
	if err := f.primary.Restart(); err != nil {
		t.Fatal(err)
	}
	eventually(t, 20*time.Second, func() string {
		for _, row := range show(t, f.pgebb, "SHOW POOLS") {
			if row["port"] == fmt.Sprint(f.primary.Port) && row["role"] != "auto" {
				return "the old primary counts as " + row["role"]
			}
		}
		return ""
	})
	for range 10 {
		if got := f.where(c, "WHERE"); got != 1 {
			t.Errorf("a query runs on host %d, whose past was left", got)
		}
	}
	if got := query(t, c, "SELECT count(*) FROM t")[0]; got != "3" {
		t.Errorf("there are %s rows", got)
	}
}

func TestAReplicaThatDoesNotReplayGetsNoReads(t *testing.T) {
	f := startFleet(t, "lsn_check_delay = 0\nlsn_check_interval = 50\nban_replica_lag_bytes = 1000\n", "primary", "replica")
	c := f.connect("pgdog.role", "replica")
	reads := func(host int) func() string {
		return func() string {
			if got := f.where(c, "WHERE"); got != host {
				return fmt.Sprintf("reads run on host %d, want %d", got, host)
			}
			return ""
		}
	}
	eventually(t, 10*time.Second, reads(1))
	f.replicas[0].Exec(t, "postgres", "SELECT pg_wal_replay_pause()")
	f.primary.Exec(t, f.database, "CREATE TABLE t AS SELECT generate_series(1, 10000) AS x")
	eventually(t, 10*time.Second, reads(0))
	f.replicas[0].Exec(t, "postgres", "SELECT pg_wal_replay_resume()")
	eventually(t, 10*time.Second, reads(1))
}

// TestALoginNeedsOneHostThatCanBeReached, whichever it is.
func TestALoginNeedsOneHostThatCanBeReached(t *testing.T) {
	f := startFleet(t, "checkout_timeout = 10000\nmin_pool_size = 0\n", "primary", "replica")
	f.primary.Kill()
	c, err := frontendtest.Connect(through(f.pgebb, f.database))
	if err != nil {
		t.Fatalf("without a primary nobody can log in: %v", err)
	}
	defer c.Close()
	if got := f.where(c, "/* pgdog_role: replica */ WHERE"); got != 1 {
		t.Errorf("a read runs on host %d", got)
	}
	if err := f.primary.Restart(); err != nil { // so that what is in it can be dropped
		t.Fatal(err)
	}
}
