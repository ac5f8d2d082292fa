package testpg

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// Replica starts a streaming replica of a server, with the same users and passwords. It
// returns when the replica answers queries.
func (s *Server) Replica() (*Server, error) {
	bin, err := BinDir()
	if err != nil {
		return nil, err
	}
	dir, err := tempDir("pgebb-pg-")
	if err != nil {
		return nil, err
	}
	r := &Server{Host: "127.0.0.1", Dir: dir, User: s.User, Password: s.Password, data: dir, settings: s.settings}
	err = r.prepare()
	if err == nil {
		err = r.copyFrom(bin, s)
	}
	if err == nil {
		err = r.start(bin)
	}
	if err != nil {
		os.RemoveAll(dir)
		return nil, err
	}
	return r, nil
}

// copyFrom makes the database cluster a copy that follows the primary.
func (s *Server) copyFrom(bin string, primary *Server) error {
	backup := exec.Command(filepath.Join(bin, "pg_basebackup"), "-D", filepath.Join(s.data, "data"), "-h", primary.Host, "-p", strconv.Itoa(primary.Port),
		"-U", primary.User, "--write-recovery-conf", "--wal-method=stream", "--checkpoint=fast", "--no-sync")
	backup.Env = append(os.Environ(), "PGPASSWORD="+primary.Password)
	return s.run(backup)
}

// Promote makes a replica a primary, and returns when it is one.
func (s *Server) Promote(tb testing.TB) {
	tb.Helper()
	s.Exec(tb, "postgres", "SELECT pg_promote(true, 60)")
}

// Pair starts a Postgres of the test's own and as many replicas of it; they are stopped
// at the end of the test.
func Pair(tb testing.TB, replicas int) (primary *Server, standbys []*Server) {
	tb.Helper()
	primary, err := Start()
	if err != nil {
		tb.Fatalf("a Postgres is needed: %v", err)
	}
	tb.Cleanup(primary.Stop)
	for range replicas {
		r, err := primary.Replica()
		if err != nil {
			tb.Fatalf("a replica is needed: %v", err)
		}
		tb.Cleanup(r.Stop)
		standbys = append(standbys, r)
	}
	return primary, standbys
}

// CaughtUp returns when the replica has replayed everything that the primary has written
// so far, written to its disk or not.
func (s *Server) CaughtUp(tb testing.TB, primary *Server) {
	tb.Helper()
	ctx := context.Background()
	var lsn string
	if err := primary.Conn(tb, "postgres").QueryRow(ctx, "SELECT pg_current_wal_insert_lsn()::text").Scan(&lsn); err != nil {
		tb.Fatal(err)
	}
	conn := s.Conn(tb, "postgres")
	if err := waitFor(ctx, conn, fmt.Sprintf("SELECT pg_last_wal_replay_lsn() >= '%s'", lsn)); err != nil {
		tb.Fatalf("the replica does not catch up: %v", err)
	}
}

// waitFor asks until the answer is true.
func waitFor(ctx context.Context, conn *pgx.Conn, sql string) error {
	deadline := time.Now().Add(20 * time.Second)
	for {
		var yes *bool
		if err := conn.QueryRow(ctx, sql).Scan(&yes); err != nil {
			return err
		}
		if yes != nil && *yes {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("%s is never true", sql)
		}
		time.Sleep(5 * time.Millisecond)
	}
}
