package e2e

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/pgebb/pgebb/frontend/frontendtest"
	"github.com/pgebb/pgebb/internal/testpg"
)

// told is what a client is told until its connection ends.
func told(t *testing.T, c *frontendtest.Client) []frontendtest.Message {
	t.Helper()
	var all []frontendtest.Message
	for {
		m, err := c.Receive()
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			t.Fatalf("after %q: %v", frontendtest.Types(all), err)
		}
		all = append(all, m)
	}
}

// wantFatal checks that a client's connection ends with an error.
func wantFatal(t *testing.T, c *frontendtest.Client, code, detail string) {
	t.Helper()
	all := told(t, c)
	if len(all) == 0 || all[len(all)-1].Type != 'E' {
		t.Fatalf("the client is told %q and no error", frontendtest.Types(all))
	}
	last := all[len(all)-1]
	if got := (&frontendtest.Refused{Message: last}).Code(); got != code || !strings.Contains(last.Show(), detail) {
		t.Errorf("the client is told %s, want SQLSTATE %s with %q", last.Show(), code, detail)
	}
}

func TestTimeoutsNameTheLimitAndItsValue(t *testing.T) {
	pg := testpg.ForTest(t)
	for name, c := range map[string]struct {
		general string
		before  func(c *frontendtest.Client) error
		code    string
		detail  string
	}{
		"query_timeout": {
			"query_timeout = 200", func(c *frontendtest.Client) error { return c.Say(&pgproto3.Query{String: "SELECT pg_sleep(100)"}) },
			"58000", "query_timeout of 200ms",
		},
		"query_timeout in a message": {"query_timeout = 200", halfAQuery, "58000", "query_timeout of 200ms"},
		"client_idle_timeout": {
			"client_idle_timeout = 200", func(c *frontendtest.Client) error { _, err := c.Query("SELECT 1"); return err },
			"57P05", "client_idle_timeout of 200ms",
		},
		"client_idle_in_transaction_timeout": {
			"client_idle_in_transaction_timeout = 200", func(c *frontendtest.Client) error { _, err := c.Query("BEGIN"); return err },
			"57P05", "client_idle_in_transaction_timeout of 200ms",
		},
		"client_idle_in_transaction_timeout in a message": {
			"client_idle_in_transaction_timeout = 200",
			halfAQuery,
			"57P05", "client_idle_in_transaction_timeout of 200ms",
		},
		"client_idle_in_transaction_timeout in a batch": {
			"client_idle_in_transaction_timeout = 200",
			func(c *frontendtest.Client) error {
				if err := c.Say(&pgproto3.Parse{Query: "SELECT 1"}, &pgproto3.Flush{}); err != nil {
					return err
				}
				_, err := c.Until('1')
				return err
			},
			"57P05", "client_idle_in_transaction_timeout of 200ms",
		},
	} {
		t.Run(strings.ReplaceAll(name, " ", "-"), func(t *testing.T) {
			database := pg.Database(t)
			o := pg.Options(database, "transaction", 1)
			o.General += c.general + "\n"
			p := testpg.Pgebb(t, o)
			client := connect(t, through(p, database))
			if err := c.before(client); err != nil {
				t.Fatal(err)
			}
			wantFatal(t, client, c.code, c.detail)
			eventually(t, 5*time.Second, func() string { return poolBusy(t, p, database) })
		})
	}
}

// halfAQuery is said by a client that then falls silent, and has got a server for it.
func halfAQuery(c *frontendtest.Client) error {
	q, err := (&pgproto3.Query{String: "SELECT '" + strings.Repeat("x", 100_000) + "'"}).Encode(nil)
	if err == nil {
		_, err = c.Conn.Write(q[:60_000])
	}
	return err
}

func TestIdleInTransactionIsNotTimeSpentInQueries(t *testing.T) {
	pg := testpg.ForTest(t)
	database := pg.Database(t)
	o := pg.Options(database, "transaction", 1)
	o.General += "client_idle_in_transaction_timeout = 400\n"
	p := testpg.Pgebb(t, o)
	c := connect(t, through(p, database))
	query(t, c, "BEGIN")
	for range 4 {
		query(t, c, "SELECT pg_sleep(0.3)")
	}
	query(t, c, "COMMIT")
}

func TestAClientThatGoesOnWithItsMessageIsNotIdle(t *testing.T) {
	pg := testpg.ForTest(t)
	database := pg.Database(t)
	o := pg.Options(database, "transaction", 2)
	o.General += "client_idle_in_transaction_timeout = 400\n"
	p := testpg.Pgebb(t, o)
	slow, clock := connect(t, through(p, database)), connect(t, through(p, database))
	message, err := (&pgproto3.Query{String: "SELECT '" + strings.Repeat("x", 200_000) + "'"}).Encode(nil)
	if err != nil {
		t.Fatal(err)
	}
	for piece := range slices.Chunk(message, 50_000) {
		if _, err := slow.Conn.Write(piece); err != nil {
			t.Fatal(err)
		}
		query(t, clock, "SELECT pg_sleep(0.3)")
	}
	if _, err := slow.Until('Z'); err != nil {
		t.Error(err)
	}
}

func TestACheckoutThatTakesTooLong(t *testing.T) {
	pg := testpg.ForTest(t)
	database := pg.Database(t)
	for _, keep := range []bool{false, true} {
		t.Run(fmt.Sprintf("keep=%v", keep), func(t *testing.T) {
			o := pg.Options(database, "transaction", 1)
			o.General += "checkout_timeout = 200\n"
			if keep {
				o.General += "client_connection_recovery = \"recover\"\n"
			}
			p := testpg.Pgebb(t, o)
			holder, waits := connect(t, through(p, database)), connect(t, through(p, database))
			query(t, holder, "BEGIN")
			_, err := waits.Query("SELECT 1")
			var refused *frontendtest.Refused
			if keep && !errors.As(err, &refused) {
				t.Fatalf("the client is told %v", err)
			}
			if !keep && err == nil {
				t.Fatal("the client gets an answer")
			}
			query(t, holder, "COMMIT")
			if keep {
				if refused.Code() != "58000" || !strings.Contains(refused.Show(), "checkout_timeout (200 ms); the pool size is 1") {
					t.Errorf("the client is told %s", refused.Show())
				}
				if got := query(t, waits, "SELECT 'mine'"); got[0] != "mine" {
					t.Errorf("the next query gets %v", got)
				}
				waits.Close()
			}
			holder.Close()
			epilogue(t, pg, p, database, 1)
		})
	}
}

// TestEverybodyIsServedWhenThePoolIsMuchTooSmall: first come, first served.
func TestEverybodyIsServedWhenThePoolIsMuchTooSmall(t *testing.T) {
	pg := testpg.ForTest(t)
	database := pg.Database(t)
	p := testpg.Pgebb(t, pg.Options(database, "transaction", 2))
	var wg sync.WaitGroup
	for i := range 64 {
		wg.Go(func() {
			c, err := frontendtest.Connect(through(p, database))
			if err != nil {
				t.Error(err)
				return
			}
			defer c.Close()
			for n := range 20 {
				want := fmt.Sprintf("%d-%d", i, n)
				rows, err := c.Query("BEGIN; SELECT '" + want + "'; COMMIT")
				if err != nil || len(rows) != 1 || rows[0] != want {
					t.Errorf("client %d gets %v, %v", i, rows, err)
					return
				}
			}
		})
	}
	wg.Wait()
	epilogue(t, pg, p, database, 2)
}

// TestAColdPoolServesManyAtOnce: connections are made in parallel.
func TestAColdPoolServesManyAtOnce(t *testing.T) {
	pg := testpg.ForTest(t)
	database := pg.Database(t)
	p := testpg.Pgebb(t, pg.Options(database, "session", 40))
	var wg sync.WaitGroup
	for range 40 {
		wg.Go(func() {
			c, err := frontendtest.Connect(through(p, database))
			if err != nil {
				t.Error(err)
				return
			}
			defer c.Close()
			if _, err := c.Query("SELECT 1"); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
}

func TestStatementModeRefusesTransactionBlocks(t *testing.T) {
	pg := testpg.ForTest(t)
	database := pg.Database(t)
	p := testpg.Pgebb(t, pg.Options(database, "statement", 1))
	c := connect(t, through(p, database))
	for _, sql := range []string{"BEGIN", "/* x */ start  transaction"} {
		if _, err := c.Query(sql); code(err) != "58000" {
			t.Errorf("%s: %v", sql, err)
		}
	}
	if err := c.Say(&pgproto3.Parse{Query: "BEGIN"}, &pgproto3.Bind{}, &pgproto3.Execute{}, &pgproto3.Sync{}); err != nil {
		t.Fatal(err)
	}
	if got, err := c.Until('Z'); err != nil || frontendtest.Types(got) != "EZ" {
		t.Errorf("BEGIN by the extended protocol is told %q, %v", frontendtest.Types(got), err)
	}
	if got := query(t, c, "SELECT 1"); got[0] != "1" {
		t.Errorf("a statement gets %v", got)
	}
	// What the first words do not show is noticed when it has happened.
	if err := c.Say(&pgproto3.Query{String: "SELECT 1; BEGIN"}); err != nil {
		t.Fatal(err)
	}
	wantFatal(t, c, "58000", "statement")
	epilogueStatement(t, p, database)
}

// epilogueStatement is the epilogue without transactions.
func epilogueStatement(t *testing.T, p *testpg.Process, database string) {
	t.Helper()
	eventually(t, 2*time.Second, func() string { return poolBusy(t, p, database) })
	query(t, connect(t, through(p, database)), "SELECT 1")
}
