package testpg

import (
	"context"
	"crypto/rand"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/pgebb/pgebb/internal/leak"
)

var (
	shared   *Server
	started  bool // by this process
	sharing  sync.Mutex
	building sync.Once
	binary   string
	buildErr error
)

// Main runs a package's tests, stops what they have started, and exits: not with 0 if
// they have left goroutines or descriptors behind. It is to be called by TestMain.
func Main(m *testing.M) {
	os.Exit(leak.Check(m, func() {
		sharing.Lock()
		defer sharing.Unlock()
		if started {
			shared.Stop()
		}
	}, sweep))
}

// ForTest returns the Postgres of this test binary: the one that [EnvURL] names, or one
// that is started now.
func ForTest(tb testing.TB) *Server {
	tb.Helper()
	sharing.Lock()
	defer sharing.Unlock()
	if shared != nil {
		return shared
	}
	var err error
	if text, ok := os.LookupEnv(EnvURL); ok {
		shared, err = Running(text)
	} else {
		shared, err = Start()
		started = err == nil
	}
	if err != nil {
		shared = nil
		tb.Fatalf("a Postgres is needed: %v", err)
	}
	return shared
}

// Conn connects to a database as the superuser; it is closed at the end of the test.
func (s *Server) Conn(tb testing.TB, database string) *pgx.Conn {
	tb.Helper()
	conn, err := pgx.Connect(context.Background(), s.URL(database))
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { conn.Close(context.Background()) })
	return conn
}

// Name returns a name for a database or a role that nobody else has.
func Name(prefix string) string { return prefix + "_" + strings.ToLower(rand.Text()[:8]) }

// Exec runs statements as the superuser.
func (s *Server) Exec(tb testing.TB, database string, statements ...string) {
	tb.Helper()
	conn, err := pgx.Connect(context.Background(), s.URL(database))
	if err != nil {
		tb.Fatal(err)
	}
	defer conn.Close(context.Background())
	for _, sql := range statements {
		if _, err := conn.Exec(context.Background(), sql); err != nil {
			tb.Fatalf("%s: %v", sql, err)
		}
	}
}

// Database makes a database, and a role of the same name and with that name for its
// password who owns it; both are dropped at the end of the test.
func (s *Server) Database(tb testing.TB) string {
	tb.Helper()
	name := Name("t")
	s.Exec(tb, "postgres", fmt.Sprintf("CREATE ROLE %s LOGIN PASSWORD '%s'", name, name), fmt.Sprintf("CREATE DATABASE %s OWNER %s", name, name))
	tb.Cleanup(func() {
		s.Exec(tb, "postgres", fmt.Sprintf("DROP DATABASE %s WITH (FORCE)", name), "DROP ROLE "+name)
	})
	return name
}

// Pgebb starts a pgebb, built with the race detector if the test is, and stops it at
// the end of the test, which fails if it has misbehaved.
func Pgebb(tb testing.TB, o Options) *Process {
	tb.Helper()
	if o.Binary == "" {
		o.Binary = Binary(tb)
	}
	p, err := StartPgebb(o)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := p.Stop(); err != nil {
			tb.Error(err)
		} else if tb.Failed() {
			tb.Logf("pgebb says:\n%s", p.Log())
		}
	})
	return p
}

// Options are for one database of the server with its owner, in the given pool mode and
// size.
func (s *Server) Options(database, mode string, size int) Options {
	return Options{
		General: fmt.Sprintf("pooler_mode = %q\ndefault_pool_size = %d\nlog_connections = false\nlog_disconnections = false\n", mode, size),
		Config:  fmt.Sprintf("[[databases]]\nname = %q\nhost = %q\nport = %d\n", database, s.Host, s.Port),
		Users:   fmt.Sprintf("[[users]]\nname = %q\npassword = %q\ndatabase = %q\n", database, database, database),
	}
}

// Binary is the path of the pgebb to test: the one that [EnvBinary] names, or one that
// is built now, once per test binary, with the race detector if the test has it.
func Binary(tb testing.TB) string {
	tb.Helper()
	building.Do(func() {
		if binary = os.Getenv(EnvBinary); binary != "" {
			return
		}
		dir, err := tempDir("pgebb-bin-")
		if err != nil {
			buildErr = err
			return
		}
		binary = filepath.Join(dir, "pgebb")
		args := []string{"build", "-buildvcs=false", "-o", binary}
		if raceEnabled {
			args = append(args, "-race")
		}
		cmd := exec.Command("go", append(args, "./cmd/pgebb")...)
		cmd.Dir = Root()
		if out, err := cmd.CombinedOutput(); err != nil {
			buildErr = fmt.Errorf("building pgebb: %w\n%s", err, out)
		}
	})
	if buildErr != nil {
		tb.Fatal(buildErr)
	}
	return binary
}

// Root is the folder of the module.
func Root() string {
	_, file, _, _ := runtime.Caller(0)
	return filepath.Join(filepath.Dir(file), "..", "..")
}
