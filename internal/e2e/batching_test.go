package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/pgebb/pgebb/frontend/frontendtest"
	"github.com/pgebb/pgebb/internal/loop"
	"github.com/pgebb/pgebb/internal/testpg"
)

// TestCallsAreMadeTogetherIfThatIsWanted has several clients ask while pgebb is stopped, so that it
// finds all of that in one round.
func TestCallsAreMadeTogetherIfThatIsWanted(t *testing.T) {
	const clients = 8
	pg := testpg.ForTest(t)
	database := pg.Database(t)
	for _, wanted := range []bool{true, false} {
		o := pg.Options(database, "transaction", clients)
		port := freePort(t)
		o.General += fmt.Sprintf("io_uring = %t\nopenmetrics_host = \"127.0.0.1\"\nopenmetrics_port = %d\n", wanted, port)
		p := testpg.Pgebb(t, o)
		var all []*frontendtest.Client
		for range clients {
			all = append(all, connect(t, through(p, database)))
		}
		for _, s := range []syscall.Signal{syscall.SIGSTOP, syscall.SIGCONT} {
			if err := p.Signal(s); err != nil {
				t.Fatal(err)
			}
			if s == syscall.SIGSTOP {
				eventually(t, 5*time.Second, func() string { return threadsThatRun(t, p.PID()) })
			}
			for _, c := range all {
				if s == syscall.SIGSTOP {
					says(t, c, 0, &pgproto3.Query{String: "SELECT 1"})
				} else if _, err := c.Until('Z'); err != nil {
					t.Fatal(err)
				}
			}
		}
		n := metrics(t, port)["pgebb_batched_calls_total"]
		if together := wanted && loop.Batching() == nil; together && n < clients/2 || !together && n > 0 {
			t.Errorf("io_uring = %t: %v reads and writes were made together", wanted, n)
		}
	}
}

// threadsThatRun says that a thread of a process has not stopped yet; empty if all have.
func threadsThatRun(t *testing.T, pid int) string {
	t.Helper()
	all, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", pid))
	if err != nil || len(all) == 0 {
		t.Fatalf("process %d has no threads: %v", pid, err)
	}
	for _, path := range all {
		text, err := os.ReadFile(path)
		if err != nil {
			continue // it has ended
		}
		// The state stands behind the name, which is in parentheses.
		if _, state, _ := strings.Cut(string(text), ") "); !strings.HasPrefix(state, "T") {
			return "a thread runs: " + string(text)
		}
	}
	return ""
}
