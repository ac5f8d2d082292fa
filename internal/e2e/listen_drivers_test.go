package e2e

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/pgebb/pgebb/internal/testpg"
)

// TestPgxListens in all of its ways to send a statement.
func TestPgxListens(t *testing.T) {
	pg := testpg.ForTest(t)
	database := pg.Database(t)
	p := listening(t, pg, database, "transaction", 2, 100)
	other := pg.Conn(t, database)
	for _, mode := range []pgx.QueryExecMode{pgx.QueryExecModeCacheStatement, pgx.QueryExecModeExec, pgx.QueryExecModeSimpleProtocol} {
		cfg, err := pgx.ParseConfig(driverURL(p, database, ""))
		if err != nil {
			t.Fatal(err)
		}
		cfg.DefaultQueryExecMode = mode
		conn, err := pgx.ConnectConfig(t.Context(), cfg)
		if err != nil {
			t.Fatal(err)
		}
		for i := range 3 {
			if _, err := conn.Exec(t.Context(), "LISTEN pgx"); err != nil {
				t.Fatalf("%v: %v", mode, err)
			}
			if _, err := other.Exec(t.Context(), "SELECT pg_notify('pgx', $1)", fmt.Sprint(i)); err != nil {
				t.Fatal(err)
			}
			ctx, stop := context.WithTimeout(t.Context(), 10*time.Second)
			n, err := conn.WaitForNotification(ctx)
			stop()
			if err != nil || n.Channel != "pgx" || n.Payload != fmt.Sprint(i) || n.PID != other.PgConn().PID() {
				t.Fatalf("%v: %v, %v", mode, n, err)
			}
			if _, err := conn.Exec(t.Context(), "UNLISTEN *"); err != nil {
				t.Fatalf("%v: %v", mode, err)
			}
		}
		conn.Close(t.Context())
	}
}

// TestDriversListen in transaction mode.
func TestDriversListen(t *testing.T) {
	pg := testpg.ForTest(t)
	database := pg.Database(t)
	p := listening(t, pg, database, "transaction", 2, 100)
	for _, d := range [][]string{
		{"node", filepath.Join(testpg.Root(), "internal/e2e/node/listen.js")},
		{"/usr/bin/python3", filepath.Join(testpg.Root(), "internal/e2e/python/listen.py")},
	} {
		if out := runs(t, p, database, "", d[0], d[1:]...); !strings.Contains(out, "all is well") {
			t.Errorf("%s prints %s", d[0], out)
		}
	}
}
