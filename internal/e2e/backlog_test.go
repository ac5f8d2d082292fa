package e2e

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/pgebb/pgebb/frontend/frontendtest"
	"github.com/pgebb/pgebb/internal/testpg"
	"github.com/pgebb/pgebb/internal/wire"
)

// countAnswers reads messages up to a ReadyForQuery, and counts them by type.
func countAnswers(c *frontendtest.Client) (map[byte]int, error) {
	n, r := map[byte]int{}, bufio.NewReader(c)
	for n[wire.ReadyForQuery] == 0 {
		var header [wire.HeaderSize]byte
		if _, err := io.ReadFull(r, header[:]); err != nil {
			return n, err
		}
		n[header[0]]++
		if _, err := io.CopyN(io.Discard, r, int64(binary.BigEndian.Uint32(header[1:]))-4); err != nil {
			return n, err
		}
	}
	return n, nil
}

// TestABatchOfAnyLengthTakesLittle has a client send a batch of hundreds of thousands of
// messages, and Postgres answer each of them, while little is kept here and in Postgres.
func TestABatchOfAnyLengthTakesLittle(t *testing.T) {
	const pairs, limit = 100_000, 50
	pg := testpg.ForTest(t)
	for name, c := range map[string]struct {
		pair func(i int) []pgproto3.FrontendMessage
		want map[byte]int
	}{
		"one statement": {
			func(int) []pgproto3.FrontendMessage {
				return []pgproto3.FrontendMessage{&pgproto3.Bind{PreparedStatement: "k"}, &pgproto3.Execute{}}
			}, map[byte]int{wire.BindComplete: pairs, wire.DataRow: pairs, wire.CommandComplete: pairs},
		},
		"statements that are closed": {
			func(i int) []pgproto3.FrontendMessage {
				name := fmt.Sprintf("s%d", i)
				return []pgproto3.FrontendMessage{&pgproto3.Parse{Name: name, Query: fmt.Sprintf("SELECT %d", i)}, &pgproto3.Close{ObjectType: 'S', Name: name}}
			}, map[byte]int{wire.ParseComplete: pairs, wire.CloseComplete: pairs},
		},
		"the same one defined and closed": {
			func(int) []pgproto3.FrontendMessage {
				return []pgproto3.FrontendMessage{&pgproto3.Parse{Name: "x", Query: "SELECT 2"}, &pgproto3.Close{ObjectType: 'S', Name: "x"}}
			}, map[byte]int{wire.ParseComplete: pairs, wire.CloseComplete: pairs},
		},
	} {
		t.Run(name, func(t *testing.T) {
			database := pg.Database(t)
			o := pg.Options(database, "transaction", 1)
			o.General += fmt.Sprintf("prepared_statements_limit = %d\n", limit)
			p := testpg.Pgebb(t, o)
			client := connect(t, through(p, database))
			if err := client.Say(&pgproto3.Parse{Name: "k", Query: "SELECT 1"}, &pgproto3.Sync{}); err != nil {
				t.Fatal(err)
			}
			if _, err := client.Until(wire.ReadyForQuery); err != nil {
				t.Fatal(err)
			}
			sent := make(chan error, 1)
			go func() { sent <- sendPairs(client, pairs, c.pair) }()
			most := sampleMemory(t, p, "rss/ledger/server_queues", "rss/ledger/server_statements")
			got, err := countAnswers(client)
			queues, statements := most()
			if queues > 8<<20 || statements > 1<<20 {
				t.Errorf("the queue of the server takes up to %d bytes, and what it knows of its statements %d", queues, statements)
			}
			if err != nil {
				t.Fatalf("after %d answers: %v", got, err)
			}
			if err := <-sent; err != nil {
				t.Fatal(err)
			}
			for typ, n := range c.want {
				if got[typ] != n {
					t.Errorf("there are %d answers of type %c, want %d", got[typ], typ, n)
				}
			}
			if got[wire.ErrorResponse] > 0 {
				t.Errorf("there are %d errors", got[wire.ErrorResponse])
			}
			epilogue(t, pg, p, database, 1)
		})
	}
}

// sampleMemory asks again and again for what two holders take, until the result is called, which
// returns the most of each.
func sampleMemory(t *testing.T, p *testpg.Process, first, second string) (most func() (int64, int64)) {
	stop, ended := make(chan struct{}), make(chan struct{})
	var a, b int64
	go func() {
		defer close(ended)
		for {
			now := memoryOf(t, p)
			a, b = max(a, now[first]), max(b, now[second])
			select {
			case <-stop:
				return
			case <-time.After(20 * time.Millisecond):
			}
		}
	}()
	return func() (int64, int64) {
		close(stop)
		<-ended
		return a, b
	}
}

// sendPairs sends a batch.
func sendPairs(c *frontendtest.Client, pairs int, pair func(i int) []pgproto3.FrontendMessage) error {
	for i := 0; i < pairs; i += 100 {
		var some []pgproto3.FrontendMessage
		for j := range 100 {
			some = append(some, pair(i+j)...)
		}
		if i+100 == pairs {
			some = append(some, &pgproto3.Sync{})
		}
		if err := c.Say(some...); err != nil {
			return err
		}
	}
	return nil
}

// TestABatchIsRefusedOnce: Postgres ignores what follows a message that is refused, up to the
// Sync, and so does the log.
func TestABatchIsRefusedOnce(t *testing.T) {
	pg := testpg.ForTest(t)
	database := pg.Database(t)
	o := pg.Options(database, "transaction", 1)
	o.General += "prepared_statements_client_limit = 1\n"
	p := testpg.Pgebb(t, o)
	c := connect(t, through(p, database))
	var many []pgproto3.FrontendMessage
	for i := range 50 {
		many = append(many, &pgproto3.Parse{Name: fmt.Sprintf("s%d", i), Query: "SELECT 1"})
	}
	for range 2 { // the second batch begins with what the first has not defined
		if err := c.Say(append(many, &pgproto3.Sync{})...); err != nil {
			t.Fatal(err)
		}
		got, err := countAnswers(c)
		if err != nil || got[wire.ErrorResponse] != 1 || got[wire.ParseComplete] > 1 {
			t.Errorf("a batch of 50 statements where one is allowed is answered by %v, %v", got, err)
		}
	}
	if n := strings.Count(p.Log(), "too many prepared statements"); n != 2 {
		t.Errorf("the log has %d refusals of 2 batches", n)
	}
	epilogue(t, pg, p, database, 1)
}
