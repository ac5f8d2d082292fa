package e2e

import (
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/pgebb/pgebb/frontend/frontendtest"
	"github.com/pgebb/pgebb/internal/testpg"
)

// TestAClientThatVanishesLeavesNothingBehind has a client vanish at one point, and looks
// at what the next one gets.
func TestAClientThatVanishesLeavesNothingBehind(t *testing.T) {
	pg := testpg.ForTest(t)
	database := pg.Database(t)
	pg.Exec(t, database, "CREATE TABLE vanish (i int)", "ALTER TABLE vanish OWNER TO "+database)
	large := strings.Repeat("x", 100_000)
	for name, say := range map[string]func(c *frontendtest.Client) error{
		"in a query":              func(c *frontendtest.Client) error { return c.Say(&pgproto3.Query{String: "SELECT pg_sleep(0.2)"}) },
		"in a long query":         func(c *frontendtest.Client) error { return c.Say(&pgproto3.Query{String: "SELECT pg_sleep(1000)"}) },
		"in the middle of a text": func(c *frontendtest.Client) error { return c.Send([]byte("Q\x00\x01\x00\x00SELECT '" + large[:20000])) },
		"in a short text":         func(c *frontendtest.Client) error { return c.Send([]byte("Q\x00\x00\x00\x20SELE")) },
		"in a header":             func(c *frontendtest.Client) error { return c.Send([]byte("Q\x00\x00")) },
		"in a transaction":        func(c *frontendtest.Client) error { _, err := c.Query("BEGIN; LOCK TABLE vanish"); return err },
		"in a failed transaction": func(c *frontendtest.Client) error { _, _ = c.Query("BEGIN; SELECT 1/0"); return nil },
		"in a batch": func(c *frontendtest.Client) error {
			return c.Say(&pgproto3.Parse{Query: "LOCK TABLE vanish"}, &pgproto3.Bind{}, &pgproto3.Execute{}, &pgproto3.Flush{})
		},
		"behind a failed Parse": func(c *frontendtest.Client) error { return c.Say(&pgproto3.Parse{Query: "nonsense"}) },
		"in COPY FROM": func(c *frontendtest.Client) error {
			return c.Say(&pgproto3.Query{String: "COPY vanish FROM STDIN"}, &pgproto3.CopyData{Data: []byte("1\n")})
		},
		"in COPY FROM by the extended protocol": func(c *frontendtest.Client) error {
			return c.Say(&pgproto3.Parse{Query: "COPY vanish FROM STDIN"}, &pgproto3.Bind{}, &pgproto3.Execute{}, &pgproto3.Flush{})
		},
		"behind a COPY FROM that has read its Sync": func(c *frontendtest.Client) error {
			return copies(c, &pgproto3.Sync{}, &pgproto3.CopyDone{})
		},
		"behind a COPY FROM whose end was asked for": func(c *frontendtest.Client) error {
			if err := copies(c, &pgproto3.Sync{}, &pgproto3.CopyData{Data: []byte("1\n")}, &pgproto3.CopyDone{}, &pgproto3.Flush{}); err != nil {
				return err
			}
			_, err := c.Until('C')
			return err
		},
		"behind a COPY FROM without a Sync": func(c *frontendtest.Client) error {
			return copies(c, &pgproto3.Flush{}, &pgproto3.CopyDone{})
		},
		"in COPY TO of 64 MB": func(c *frontendtest.Client) error {
			if err := c.Say(&pgproto3.Query{String: "COPY (SELECT repeat('y', 1000) FROM generate_series(1, 64000)) TO STDOUT"}); err != nil {
				return err
			}
			_, err := io.ReadFull(c, make([]byte, 64<<10))
			return err
		},
		"in a row of 64 MB": func(c *frontendtest.Client) error {
			if err := c.Say(&pgproto3.Query{String: "SELECT repeat('x', 64000000)"}); err != nil {
				return err
			}
			_, err := io.ReadFull(c, make([]byte, 1024))
			return err
		},
		"with answers that nobody reads": func(c *frontendtest.Client) error {
			for range 50 {
				if err := c.Say(&pgproto3.Query{String: "SELECT repeat('z', 10000)"}); err != nil {
					return err
				}
			}
			return nil
		},
	} {
		for _, mode := range []string{"transaction", "session"} {
			for _, how := range []string{"close", "reset"} {
				t.Run(fmt.Sprintf("%s/%s/%s", strings.ReplaceAll(name, " ", "-"), mode, how), func(t *testing.T) {
					t.Parallel()
					o := pg.Options(database, mode, 1)
					timeout := 20_000 // longer than anybody waits
					if name == "in a long query" {
						timeout = 2000 // which ends it
					}
					o.General += fmt.Sprintf("rollback_timeout = %d\nlog_level = \"error\"\n", timeout)
					p := testpg.Pgebb(t, o)
					c := connect(t, through(p, database))
					if err := say(c); err != nil {
						t.Fatal(err)
					}
					if how == "reset" {
						c.Reset()
					}
					c.Close()
					next := connect(t, through(p, database))
					if got := query(t, next, "SELECT 'mine'"); got[0] != "mine" {
						t.Errorf("the next client gets %v", got)
					}
					next.Close()
					eventually(t, 5*time.Second, func() string { return poolBusy(t, p, database) })
					last := connect(t, through(p, database))
					if n := query(t, last, "SELECT count(*) FROM vanish"); n[0] != "0" {
						t.Errorf("%s rows of what was not finished are there", n[0])
					}
					query(t, last, "BEGIN")
					query(t, last, "LOCK TABLE vanish")
					query(t, last, "ROLLBACK")
				})
			}
		}
	}
}

// copies starts a COPY by the extended protocol, with a message of its batch behind it, and
// says more once Postgres reads the data.
func copies(c *frontendtest.Client, behind pgproto3.FrontendMessage, more ...pgproto3.FrontendMessage) error {
	if err := c.Say(append(batch("COPY vanish FROM STDIN"), behind)...); err != nil {
		return err
	}
	if _, err := c.Until('G'); err != nil {
		return err
	}
	return c.Say(more...)
}

// TestAClientThatVanishesInABatchHasDoneNothing: without its Sync a batch is not committed,
// whatever of it was carried out.
func TestAClientThatVanishesInABatchHasDoneNothing(t *testing.T) {
	pg := testpg.ForTest(t)
	database := pg.Database(t)
	pg.Exec(t, database, "CREATE TABLE half (i int)", "ALTER TABLE half OWNER TO "+database)
	for _, mode := range []string{"transaction", "session"} {
		for what, end := range map[string]pgproto3.FrontendMessage{"flush": &pgproto3.Flush{}, "terminate": &pgproto3.Terminate{}} {
			t.Run(mode+"/"+what, func(t *testing.T) {
				p := testpg.Pgebb(t, pg.Options(database, mode, 1))
				c := connect(t, through(p, database))
				if err := c.Say(append(batch("INSERT INTO half VALUES (1)"), end)...); err != nil {
					t.Fatal(err)
				}
				if what == "flush" {
					if _, err := c.Until('C'); err != nil {
						t.Fatal(err)
					}
				}
				c.Close()
				eventually(t, 5*time.Second, func() string { return poolBusy(t, p, database) })
				next := connect(t, through(p, database))
				if n := query(t, next, "SELECT count(*) FROM half"); n[0] != "0" {
					t.Errorf("%s rows of a batch without a Sync are there", n[0])
				}
				next.Close()
				epilogue(t, pg, p, database, 1)
			})
		}
	}
}

// TestALongQueryWhoseClientVanishedIsCancelled: nobody wants its result, and its server
// is needed.
func TestALongQueryWhoseClientVanishedIsCancelled(t *testing.T) {
	pg := testpg.ForTest(t)
	database := pg.Database(t)
	o := pg.Options(database, "transaction", 1)
	o.General += "rollback_timeout = 300\n"
	p := testpg.Pgebb(t, o)
	c := connect(t, through(p, database))
	if err := c.Say(&pgproto3.Query{String: "SELECT pg_sleep(100), 'vanished'"}); err != nil {
		t.Fatal(err)
	}
	running(t, pg, database, "%vanished%")
	c.Close()
	watcher := connect(t, direct(pg, database))
	eventually(t, 5*time.Second, func() string {
		if n := query(t, watcher, "SELECT count(*) FROM pg_stat_activity WHERE query LIKE '%vanished%' AND pid <> pg_backend_pid() AND state = 'active'"); n[0] != "0" {
			return "the query goes on"
		}
		return ""
	})
	watcher.Close()
	epilogue(t, pg, p, database, 1)
}

// TestAnIdleServerThatDiesIsReplacedUnnoticed kills all servers between two queries.
func TestAnIdleServerThatDiesIsReplacedUnnoticed(t *testing.T) {
	pg := testpg.ForTest(t)
	database := pg.Database(t)
	p := testpg.Pgebb(t, pg.Options(database, "transaction", 2))
	c := connect(t, through(p, database))
	killer := pg.Conn(t, "postgres")
	for range 20 {
		query(t, c, "SELECT 1")
		rows, err := killer.Query(t.Context(), "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE datname = $1", database)
		if err != nil {
			t.Fatal(err)
		}
		for rows.Next() {
			// each row is a server that is gone
		}
		if rows.Err() != nil {
			t.Fatal(rows.Err())
		}
	}
	query(t, c, "SELECT 1")
	if want := "Postgres closed it: terminating connection due to administrator command (SQLSTATE 57P01)"; !strings.Contains(p.Log(), want) {
		t.Errorf("the log does not say %q: %s", want, p.Log())
	}
	c.Close()
	epilogue(t, pg, p, database, 2)
}
