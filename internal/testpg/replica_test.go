package testpg_test

import (
	"context"
	"testing"

	"github.com/pgebb/pgebb/internal/testpg"
)

func TestAReplicaFollowsItsPrimaryUntilItIsPromoted(t *testing.T) {
	primary, replicas := testpg.Pair(t, 1)
	replica := replicas[0]
	primary.Exec(t, "postgres", "CREATE TABLE t AS SELECT 42 AS x")
	replica.CaughtUp(t, primary)
	var x int
	var recovering bool
	conn := replica.Conn(t, "postgres")
	if err := conn.QueryRow(context.Background(), "SELECT x, pg_is_in_recovery() FROM t").Scan(&x, &recovering); err != nil || x != 42 || !recovering {
		t.Errorf("the replica has %d, in recovery: %v, %v", x, recovering, err)
	}
	conn.Close(context.Background())

	replica.Kill()
	if err := replica.Restart(); err != nil {
		t.Fatal(err)
	}
	primary.Kill()
	replica.Promote(t)
	replica.Exec(t, "postgres", "INSERT INTO t VALUES (43)")
}
