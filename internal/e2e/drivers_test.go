package e2e

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	_ "github.com/lib/pq"

	"github.com/pgebb/pgebb/internal/testpg"
)

// driverModes are the pooler modes that drivers are tested in.
var driverModes = []string{"transaction", "session"}

// withDatabase runs a test in each mode, with a pool that is smaller than the number of
// the driver's connections where the mode allows it.
func withDatabase(t *testing.T, test func(t *testing.T, pg *testpg.Server, p *testpg.Process, database string)) {
	pg := testpg.ForTest(t)
	for _, mode := range driverModes {
		t.Run(mode, func(t *testing.T) {
			database := pg.Database(t)
			size := 2
			if mode == "session" {
				size = 8
			}
			p := testpg.Pgebb(t, pg.Options(database, mode, size))
			test(t, pg, p, database)
			epilogue(t, pg, p, database, size)
		})
	}
}

func driverURL(p *testpg.Process, database, options string) string {
	return fmt.Sprintf("postgres://%s:%s@%s/%s?sslmode=disable%s", database, database, p.Address(), database, options)
}

// runs runs a program with the connection's parameters in its environment.
func runs(t *testing.T, p *testpg.Process, database string, stdin string, name string, args ...string) string {
	t.Helper()
	cmd := exec.Command(name, args...)
	cmd.Env = append(os.Environ(), "PGHOST="+p.Host, fmt.Sprintf("PGPORT=%d", p.Port), "PGUSER="+database, "PGPASSWORD="+database, "PGDATABASE="+database,
		"PGSSLMODE=disable", "PGEBB_ADMIN_PASSWORD="+testpg.AdminPassword)
	cmd.Stdin = strings.NewReader(stdin)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
	return string(out)
}

// program finds a program of Postgres's.
func program(t *testing.T, name string) string {
	t.Helper()
	if path, err := exec.LookPath(name); err == nil {
		return path
	}
	bin, err := testpg.BinDir()
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Join(bin, name)
}

func TestPsql(t *testing.T) {
	withDatabase(t, func(t *testing.T, _ *testpg.Server, p *testpg.Process, database string) {
		out := runs(t, p, database, `
CREATE TABLE lines (i int, t text);
\copy lines FROM PSTDIN WITH (FORMAT csv)
`, program(t, "psql"), "-X", "-v", "ON_ERROR_STOP=1", "-c", "SELECT 1 AS one", "-c", "SELECT current_database()")
		if !strings.Contains(out, database) {
			t.Errorf("psql prints %s", out)
		}
		file := filepath.Join(t.TempDir(), "lines.csv")
		if err := os.WriteFile(file, []byte("1,a\n2,b\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		out = runs(t, p, database, fmt.Sprintf(`
CREATE TABLE lines (i int, t text);
\copy lines FROM '%s' WITH (FORMAT csv)
BEGIN;
SAVEPOINT s;
SELECT 1/0;
ROLLBACK TO s;
COMMIT;
SELECT count(*) AS n FROM lines \gset
\echo lines: :n
\d lines
\copy (SELECT t FROM lines ORDER BY i) TO STDOUT
`, file), program(t, "psql"), "-X", "-q")
		for _, want := range []string{"lines: 2", "division by zero", "Table \"public.lines\"", "\na\nb\n"} {
			if !strings.Contains(out, want) {
				t.Errorf("psql does not print %q:\n%s", want, out)
			}
		}
	})
}

func TestPgbench(t *testing.T) {
	withDatabase(t, func(t *testing.T, _ *testpg.Server, p *testpg.Process, database string) {
		pgbench := program(t, "pgbench")
		runs(t, p, database, "", pgbench, "-i", "-q", "-s", "1")
		for _, protocol := range []string{"simple", "extended", "prepared"} {
			args := []string{"-n", "-c", "8", "-j", "2", "-t", "50", "-M", protocol}
			if protocol == "prepared" {
				// pgbench waits for the answer to a Parse without looking after its other
				// clients, who may be those that have all servers in a transaction.
				args = append(args, "-S")
			}
			out := runs(t, p, database, "", pgbench, args...)
			if !strings.Contains(out, "number of transactions actually processed: 400/400") {
				t.Errorf("%s: %s", protocol, out)
			}
		}
	})
}

func TestPgx(t *testing.T) {
	ctx := context.Background()
	withDatabase(t, func(t *testing.T, _ *testpg.Server, p *testpg.Process, database string) {
		for _, execMode := range []pgx.QueryExecMode{
			pgx.QueryExecModeCacheStatement, pgx.QueryExecModeCacheDescribe, pgx.QueryExecModeDescribeExec, pgx.QueryExecModeExec, pgx.QueryExecModeSimpleProtocol,
		} {
			cfg, err := pgxpool.ParseConfig(driverURL(p, database, "&pool_max_conns=6"))
			if err != nil {
				t.Fatal(err)
			}
			cfg.ConnConfig.DefaultQueryExecMode = execMode
			db, err := pgxpool.NewWithConfig(ctx, cfg)
			if err != nil {
				t.Fatal(err)
			}
			if err := usePgx(ctx, db); err != nil {
				t.Errorf("%v: %v", execMode, err)
			}
			db.Close()
		}
	})
}

func usePgx(ctx context.Context, db *pgxpool.Pool) error {
	if _, err := db.Exec(ctx, "DROP TABLE IF EXISTS items"); err != nil {
		return err
	}
	if _, err := db.Exec(ctx, "CREATE TABLE items (id int, name text)"); err != nil {
		return err
	}
	n, err := db.CopyFrom(ctx, pgx.Identifier{"items"}, []string{"id", "name"}, pgx.CopyFromRows([][]any{{int32(1), "a"}, {int32(2), "b"}}))
	if err != nil || n != 2 {
		return fmt.Errorf("CopyFrom: %d, %w", n, err)
	}
	var batch pgx.Batch
	for i := range 20 {
		batch.Queue("INSERT INTO items VALUES ($1, $2)", i+10, fmt.Sprint("item ", i))
	}
	if err := db.SendBatch(ctx, &batch).Close(); err != nil {
		return fmt.Errorf("SendBatch: %w", err)
	}
	tx, err := db.Begin(ctx)
	if err != nil {
		return err
	}
	if _, err := tx.Exec(ctx, "DELETE FROM items WHERE id = $1", 1); err != nil {
		return err
	}
	if err := tx.Rollback(ctx); err != nil {
		return err
	}
	var sum int
	if err := db.QueryRow(ctx, "SELECT count(*) FROM items WHERE name LIKE $1", "%").Scan(&sum); err != nil {
		return err
	}
	if sum != 22 {
		return fmt.Errorf("%d rows, want 22", sum)
	}
	return nil
}

func TestLibPQ(t *testing.T) {
	withDatabase(t, func(t *testing.T, _ *testpg.Server, p *testpg.Process, database string) {
		// lib/pq describes unnamed statements in one batch and binds them in the next.
		db, err := sql.Open("postgres", driverURL(p, database, ""))
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		db.SetMaxOpenConns(6)
		if _, err := db.Exec("CREATE TABLE pq (i int)"); err != nil {
			t.Fatal(err)
		}
		tx, err := db.Begin()
		if err != nil {
			t.Fatal(err)
		}
		for i := range 10 {
			if _, err := tx.Exec("INSERT INTO pq VALUES ($1)", i); err != nil {
				t.Fatal(err)
			}
		}
		if err := tx.Commit(); err != nil {
			t.Fatal(err)
		}
		var n int
		if err := db.QueryRow("SELECT sum(i) FROM pq WHERE i < $1", 5).Scan(&n); err != nil || n != 10 {
			t.Errorf("sum = %d, %v", n, err)
		}
		prepared, err := db.Prepare("SELECT $1::int + 1")
		if err != nil {
			t.Fatal(err)
		}
		for i := range 20 {
			if err := prepared.QueryRow(i).Scan(&n); err != nil || n != i+1 {
				t.Fatalf("a prepared statement gives %d, %v", n, err)
			}
		}
		if err := prepared.Close(); err != nil {
			t.Fatal(err)
		}
		if _, err := db.Exec("SELECT 1/0"); err == nil || !strings.Contains(err.Error(), "division by zero") {
			t.Errorf("an error arrives as %v", err)
		}
	})
}

func TestNodePg(t *testing.T) {
	withDatabase(t, func(t *testing.T, _ *testpg.Server, p *testpg.Process, database string) {
		out := runs(t, p, database, "", "node", filepath.Join(testpg.Root(), "internal/e2e/node/drive.js"))
		if !strings.Contains(out, "all is well") {
			t.Errorf("node prints %s", out)
		}
	})
}

func TestPsycopg(t *testing.T) {
	withDatabase(t, func(t *testing.T, _ *testpg.Server, p *testpg.Process, database string) {
		out := runs(t, p, database, "", "/usr/bin/python3", filepath.Join(testpg.Root(), "internal/e2e/python/drive.py"))
		if !strings.Contains(out, "all is well") {
			t.Errorf("python prints %s", out)
		}
	})
}
