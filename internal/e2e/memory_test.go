package e2e

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/pgebb/pgebb/internal/testpg"
)

// memoryOf is SHOW MEMORY: bytes by name.
func memoryOf(t *testing.T, p *testpg.Process) map[string]int64 {
	t.Helper()
	lines := map[string]int64{}
	for _, row := range show(t, p, "SHOW MEMORY") {
		lines[row["name"]] = number(t, row["bytes"])
	}
	return lines
}

func number(t *testing.T, text string) int64 {
	t.Helper()
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// sum adds up a column.
func sum(t *testing.T, rows []map[string]string, column string) int64 {
	t.Helper()
	var n int64
	for _, row := range rows {
		n += number(t, row[column])
	}
	return n
}

// TestTheLinesOfShowMemoryAddUp holds in each place of the tree.
func TestTheLinesOfShowMemoryAddUp(t *testing.T) {
	pg := testpg.ForTest(t)
	db := pg.Database(t)
	p := testpg.Pgebb(t, pg.Options(db, "transaction", 2))
	query(t, connect(t, through(p, db)), "SELECT 1")
	lines := memoryOf(t, p)
	parts := map[string]int64{}
	for name, bytes := range lines {
		if i := strings.LastIndexByte(name, '/'); i > 0 {
			parts[name[:i]] += bytes
		}
	}
	for name, bytes := range parts {
		if lines[name] != bytes {
			t.Errorf("the parts of %s have %d bytes, it has %d", name, bytes, lines[name])
		}
	}
	if lines["rss"] < 1<<20 || len(parts) < 4 {
		t.Errorf("SHOW MEMORY has %v", lines)
	}
}

// TestWhatConnectionsHoldAddsUpToTheLedger has clients with prepared statements, and one
// whose Parse is not whole yet.
func TestWhatConnectionsHoldAddsUpToTheLedger(t *testing.T) {
	pg := testpg.ForTest(t)
	db := pg.Database(t)
	p := testpg.Pgebb(t, pg.Options(db, "transaction", 3))
	empty := memoryOf(t, p)
	for i := range 5 {
		c := connect(t, through(p, db))
		for j := range 10 * i {
			if err := c.Say(&pgproto3.Parse{Name: fmt.Sprint("s", j), Query: fmt.Sprintf("SELECT %d", i*j)}, &pgproto3.Sync{}); err != nil {
				t.Fatal(err)
			}
			if _, err := c.Until('Z'); err != nil {
				t.Fatal(err)
			}
		}
	}
	half := connect(t, through(p, db))
	whole, err := (&pgproto3.Parse{Name: "large", Query: strings.Repeat("x", 200_000)}).Encode(nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := half.Send(whole[:150_000]); err != nil {
		t.Fatal(err)
	}
	eventually(t, 5*time.Second, func() string {
		if got := memoryOf(t, p)["rss/ledger/client_parses"]; got < 150_000 {
			return fmt.Sprintf("%d bytes of Parses are held", got)
		}
		return ""
	})
	clients, servers, lines := show(t, p, "SHOW CLIENT MEMORY"), show(t, p, "SHOW SERVER MEMORY"), memoryOf(t, p)
	inLedger := func(names ...string) (n int64) {
		for _, name := range names {
			n += lines["rss/ledger/"+name]
		}
		return n
	}
	if got, want := sum(t, clients, "total_bytes"), inLedger("clients", "client_input", "client_parses", "client_statements"); got != want || len(clients) != 6 {
		t.Errorf("%d clients hold %d bytes, the ledger says %d", len(clients), got, want)
	}
	if got, want := sum(t, servers, "total_bytes"), inLedger("servers", "server_buffers", "server_queues", "server_statements"); got != want || len(servers) == 0 {
		t.Errorf("%d servers hold %d bytes, the ledger says %d", len(servers), got, want)
	}
	if got := sum(t, clients, "prepared_statements_bytes"); got != lines["rss/ledger/client_statements"] || got < 100*32 {
		t.Errorf("names of clients take %d bytes, the ledger says %d", got, lines["rss/ledger/client_statements"])
	}
	for _, name := range []string{"rss/ledger/client_parses", "rss/ledger/client_statements", "rss/ledger/clients"} {
		if empty[name] != 0 {
			t.Errorf("%s has %d bytes without a client", name, empty[name])
		}
	}
}
