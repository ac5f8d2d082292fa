package e2e

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/pgebb/pgebb/frontend/frontendtest"
	"github.com/pgebb/pgebb/internal/testpg"
)

// TestNoServerIsEverHeldByTwo has clients leave at random, 10,000 times, at any point of
// anything, while they and others put an owner's mark into the server's session and take
// it out again. Nobody may find a mark that is not his own, and afterwards no place in
// the pool may be lost.
func TestNoServerIsEverHeldByTwo(t *testing.T) {
	const (
		kills = 10_000
		size  = 8
		crowd = 32
	)
	pg := testpg.ForTest(t)
	database := pg.Database(t)
	pg.Exec(t, "postgres", fmt.Sprintf("ALTER ROLE %s SET client_min_messages = error", database))
	o := pg.Options(database, "transaction", size)
	o.General += "auth_type = \"trust\"\nworkers = 2\nlog_level = \"warn\"\ncheckout_timeout = 30000\n"
	p := testpg.Pgebb(t, o)
	pg.Exec(t, database, "CREATE TABLE stress (i int)", "ALTER TABLE stress OWNER TO "+database)

	var left atomic.Int64
	left.Store(kills)
	var wg sync.WaitGroup
	for worker := range crowd {
		wg.Go(func() {
			r := rand.New(rand.NewPCG(uint64(worker), 7))
			for left.Add(-1) >= 0 && !t.Failed() {
				if err := stressOnce(p, database, r); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	epilogue(t, pg, p, database, size)
}

// errKilled ends a client's life in the middle.
var errKilled = errors.New("killed")

// stressOnce is the life of one client.
func stressOnce(p *testpg.Process, database string, r *rand.Rand) error {
	network, address := "tcp", p.Address()
	if r.IntN(2) == 0 {
		network, address = "unix", fmt.Sprintf("%s/.s.PGSQL.%d", p.Dir, p.Port)
	}
	if r.IntN(20) == 0 {
		return killedAtLogin(network, address, database, r)
	}
	c, err := frontendtest.Connect(frontendtest.Login{Network: network, Address: address, User: database, Database: database})
	if err != nil {
		return fmt.Errorf("login: %w", err)
	}
	defer func() {
		if r.IntN(2) == 0 {
			c.Reset()
		}
		c.Close()
	}()
	for range 1 + r.IntN(3) {
		err := ownTransaction(c, r)
		if errors.Is(err, errKilled) {
			return nil
		}
		if err != nil {
			return err
		}
	}
	return leaveInTheMiddle(c, r)
}

// killedAtLogin leaves in the middle of a StartupMessage or right behind it.
func killedAtLogin(network, address, database string, r *rand.Rand) error {
	c, err := frontendtest.Dial(network, address)
	if err != nil {
		return err
	}
	defer c.Close()
	startup := []byte("\x00\x00\x00\x00\x00\x03\x00\x00user\x00" + database + "\x00\x00")
	startup[3] = byte(len(startup))
	return c.Send(startup[:1+r.IntN(len(startup))])
}

// ownTransaction marks a server as its own for the length of a transaction.
func ownTransaction(c *frontendtest.Client, r *rand.Rand) error {
	me := fmt.Sprint(r.Uint64())
	for i, step := range []struct{ sql, want string }{
		{"BEGIN", ""},
		{"SELECT coalesce(current_setting('stress.owner', true), '')", ""},
		{"SELECT set_config('stress.owner', '" + me + "', true)", me},
		{"SELECT current_setting('stress.owner')", me},
		{"COMMIT", ""},
	} {
		if r.IntN(30) == 0 {
			return errKilled
		}
		rows, err := c.Query(step.sql)
		if err != nil {
			return fmt.Errorf("step %d of a transaction: %w", i, err)
		}
		if got := strings.Join(rows, ","); got != step.want {
			return fmt.Errorf("%s finds %q on a server that is %q's", step.sql, got, me)
		}
	}
	return nil
}

// leaveInTheMiddle says something and does not wait for all of the answer.
func leaveInTheMiddle(c *frontendtest.Client, r *rand.Rand) error {
	var b []byte
	say := func(messages ...pgproto3.FrontendMessage) {
		for _, m := range messages {
			b, _ = m.Encode(b) // they are all well-formed
		}
	}
	parse := func(sql string) {
		say(&pgproto3.Parse{Query: sql}, &pgproto3.Bind{}, &pgproto3.Execute{})
	}
	switch r.IntN(9) {
	case 0:
		say(&pgproto3.Query{String: "SELECT pg_sleep(0.005)"})
	case 1:
		say(&pgproto3.Query{String: "SELECT repeat('x', 200000)"})
	case 2:
		say(&pgproto3.Query{String: "COPY stress FROM STDIN"}, &pgproto3.CopyData{Data: []byte("1\n")})
	case 3:
		say(&pgproto3.Query{String: "BEGIN"}, &pgproto3.Query{String: "SELECT 1/0"})
	case 4:
		parse("SELECT 1")
		say(&pgproto3.Flush{})
	case 5:
		parse("COPY stress FROM STDIN")
		say(&pgproto3.Sync{}, &pgproto3.CopyData{Data: []byte("x\n")}, &pgproto3.CopyDone{}, &pgproto3.Sync{})
	case 6:
		say(&pgproto3.Query{String: "SELECT '" + strings.Repeat("y", 10_000) + "'"})
	case 7:
		for range 5 {
			parse("SELECT 2")
			say(&pgproto3.Sync{})
		}
	case 8:
		say(&pgproto3.Query{String: "COPY (SELECT generate_series(1, 20000)) TO STDOUT"}, &pgproto3.Terminate{})
	}
	if r.IntN(3) == 0 {
		b = b[:1+r.IntN(len(b))]
	}
	if err := c.Send(b); err != nil {
		return err
	}
	if r.IntN(2) == 0 {
		// Whatever comes of it: half of a message has no answer at all.
		_ = c.SetReadDeadline(time.Now().Add(time.Duration(r.IntN(5)) * time.Millisecond))
		_, _ = c.Read(make([]byte, 1+r.IntN(2000)))
	}
	return nil
}
