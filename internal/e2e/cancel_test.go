package e2e

import (
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/pgebb/pgebb/frontend/frontendtest"
	"github.com/pgebb/pgebb/internal/testpg"
)

// cancelNow sends a cancel request that nothing may be answered to.
func cancelNow(t *testing.T, p *testpg.Process, pid uint32, secret []byte) {
	t.Helper()
	said, err := frontendtest.Cancel("tcp", p.Address(), pid, secret)
	if err != nil {
		t.Error(err)
	}
	if len(said) > 0 {
		t.Errorf("%q is written on the connection of a cancel request", said)
	}
}

// code is the SQLSTATE of what a client was refused with, empty if it was not.
func code(err error) string {
	var refused *frontendtest.Refused
	if errors.As(err, &refused) {
		return refused.Code()
	}
	return ""
}

// running waits until a statement is being executed in Postgres.
func running(t *testing.T, pg *testpg.Server, database, like string) {
	t.Helper()
	c := connect(t, direct(pg, database))
	eventually(t, 5*time.Second, func() string {
		n := query(t, c, "SELECT count(*) FROM pg_stat_activity WHERE state = 'active' AND pid <> pg_backend_pid() AND query LIKE '"+like+"'")
		if n[0] == "0" {
			return "no statement like " + like + " is being executed"
		}
		return ""
	})
	c.Close()
}

// locked is a statement with a word in it that ends when release is called, however long the rest takes.
func locked(t *testing.T, pg *testpg.Server, database, word string) (sql string, release func()) {
	t.Helper()
	c := connect(t, direct(pg, database))
	query(t, c, "SELECT pg_advisory_lock(1)")
	return "SELECT pg_advisory_xact_lock(1), '" + word + "'", func() { c.Close() }
}

func TestACancelRequestReachesTheQueryOfItsClientAndNoOther(t *testing.T) {
	pg := testpg.ForTest(t)
	database := pg.Database(t)
	p := testpg.Pgebb(t, pg.Options(database, "transaction", 2))
	a, b := connect(t, through(p, database)), connect(t, through(p, database))
	sql, release := locked(t, pg, database, "cancel")
	for _, c := range []*frontendtest.Client{a, b} {
		if err := c.Say(&pgproto3.Query{String: sql}); err != nil {
			t.Fatal(err)
		}
	}
	running(t, pg, database, "%cancel%")
	cancelNow(t, p, a.PID, a.Secret)
	if got, err := a.Until('Z'); err != nil || frontendtest.Types(got) != "EZ" && frontendtest.Types(got) != "TEZ" {
		t.Errorf("the cancelled client is told %q, %v", frontendtest.Types(got), err)
	}
	release()
	if got, err := b.Until('Z'); err != nil || frontendtest.Types(got) != "TDCZ" {
		t.Errorf("the other client is told %q, %v", frontendtest.Types(got), err)
	}
	epilogue(t, pg, p, database, 2)
}

func TestACancelRequestWithAWrongKeyOrForAnIdleClientDoesNothing(t *testing.T) {
	pg := testpg.ForTest(t)
	database := pg.Database(t)
	p := testpg.Pgebb(t, pg.Options(database, "transaction", 1))
	a, b := connect(t, through(p, database)), connect(t, through(p, database))
	query(t, a, "SELECT 1")
	sql, release := locked(t, pg, database, "busy")
	if err := b.Say(&pgproto3.Query{String: sql}); err != nil {
		t.Fatal(err)
	}
	running(t, pg, database, "%busy%")
	cancelNow(t, p, a.PID, a.Secret) // its last server is busy with another client's query
	cancelNow(t, p, b.PID, []byte{1, 2, 3, 4})
	cancelNow(t, p, b.PID+12345, b.Secret)
	cancelNow(t, p, 0, zeros(4))
	release()
	if got, err := b.Until('Z'); err != nil || frontendtest.Types(got) != "TDCZ" {
		t.Errorf("the client is told %q, %v", frontendtest.Types(got), err)
	}
	epilogue(t, pg, p, database, 1)
}

func zeros(n int) []byte { return make([]byte, n) }

func TestACancelRequestEndsTheWaitForAServer(t *testing.T) {
	pg := testpg.ForTest(t)
	database := pg.Database(t)
	p := testpg.Pgebb(t, pg.Options(database, "transaction", 1))
	holder, simple, extended := connect(t, through(p, database)), connect(t, through(p, database)), connect(t, through(p, database))
	query(t, holder, "BEGIN")
	if err := simple.Say(&pgproto3.Query{String: "SELECT 1"}, &pgproto3.Query{String: "SELECT 2"}); err != nil {
		t.Fatal(err)
	}
	if err := extended.Say(&pgproto3.Parse{Query: "SELECT 1"}, &pgproto3.Bind{}, &pgproto3.Execute{}, &pgproto3.Sync{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, 2*time.Second, func() string {
		if n := show(t, p, "SHOW POOLS")[0]["cl_waiting"]; n != "2" {
			return n + " clients wait, not 2"
		}
		return ""
	})
	for name, c := range map[string]*frontendtest.Client{"simple": simple, "extended": extended} {
		cancelNow(t, p, c.PID, c.Secret)
		got, err := c.Until('Z')
		if err != nil || frontendtest.Types(got) != "EZ" {
			t.Fatalf("%s: the waiting client is told %q, %v", name, frontendtest.Types(got), err)
		}
		if c := (&frontendtest.Refused{Message: got[0]}).Code(); c != "57014" {
			t.Errorf("%s: SQLSTATE %s", name, c)
		}
	}
	query(t, holder, "COMMIT")
	if got, err := simple.Until('Z'); err != nil || frontendtest.Types(got) != "TDCZ" {
		t.Errorf("the second query, which was not cancelled, is told %q, %v", frontendtest.Types(got), err)
	}
	query(t, extended, "SELECT 1")
	epilogue(t, pg, p, database, 1)
}

func TestAStormOfCancelRequestsHurtsNobody(t *testing.T) {
	pg := testpg.ForTest(t)
	database := pg.Database(t)
	o := pg.Options(database, "transaction", 4)
	o.General += "log_level = \"error\"\n"
	p := testpg.Pgebb(t, o)
	victim := connect(t, through(p, database))
	other := connect(t, through(p, database))
	stop := make(chan struct{})
	var wg sync.WaitGroup
	for i := range 4 {
		wg.Go(func() {
			for n := 0; ; n++ {
				select {
				case <-stop:
					return
				default:
				}
				secret := victim.Secret
				if (n+i)%2 == 0 {
					secret = zeros(4)
				}
				cancelNow(t, p, victim.PID, secret)
			}
		})
	}
	for range 200 {
		// The victim may be cancelled at any time; nobody else ever is.
		if _, err := victim.Query("SELECT 1"); err != nil && code(err) != "57014" {
			t.Fatal(err)
		}
		if rows := query(t, other, "SELECT 'mine'"); rows[0] != "mine" {
			t.Fatalf("another answer: %v", rows)
		}
	}
	close(stop)
	wg.Wait()
	epilogue(t, pg, p, database, 4)
}
