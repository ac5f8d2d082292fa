package e2e

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/pgebb/pgebb/frontend/frontendtest"
	"github.com/pgebb/pgebb/internal/testpg"
)

// TestLongPipelines has a client send a hundred thousand messages without waiting, and
// read the answers meanwhile.
func TestLongPipelines(t *testing.T) {
	t.Parallel()
	pg := testpg.ForTest(t)
	database := pg.Database(t)
	p := testpg.Pgebb(t, pg.Options(database, "transaction", 1))
	pg.Exec(t, database, "CREATE FUNCTION noticed(i int) RETURNS int LANGUAGE plpgsql AS $$ BEGIN RAISE NOTICE 'row %', i; RETURN i; END $$")
	many := func(n int, messages ...pgproto3.FrontendMessage) []byte {
		return bytes.Repeat(encoded(t, messages...), n)
	}
	statement := batch("SELECT 1")
	for name, c := range map[string]struct {
		b     []byte
		ready int
	}{
		"Syncs":                          {many(100_000, &pgproto3.Sync{}), 100_000},
		"empty queries":                  {many(50_000, &pgproto3.Query{}), 50_000},
		"Flushes in a batch":             {many(4_000, append(statement, slices.Repeat([]pgproto3.FrontendMessage{&pgproto3.Flush{}}, 10)...)...), 0},
		"statements in one batch":        {many(25_000, statement...), 0},
		"statements, each with its Sync": {many(5_000, append(statement, &pgproto3.Sync{})...), 5_000},
		"errors, each with its Sync":     {many(2_000, append(batch("SELECT 1/0"), &pgproto3.Flush{}, &pgproto3.Sync{})...), 2_000},
		"skipped statements":             {append(many(1, batch("nonsense")...), many(25_000, statement...)...), 0},
		"notices among the rows":         {many(10, batch("SELECT noticed(i) FROM generate_series(1, 2000) i")...), 0},
		"a name again and again": {append(many(1, batch("SELECT pg_sleep(0.3)")...),
			many(50_000, &pgproto3.Parse{Name: "again", Query: "SELECT 1"}, &pgproto3.Close{ObjectType: 'S', Name: "again"})...), 0},
		"COPY data that nobody asked for": {many(100_000, &pgproto3.CopyData{Data: []byte("x")}, &pgproto3.CopyDone{}, &pgproto3.CopyFail{}), 0},
		"a Sync behind each row of a COPY": {append(many(1, &pgproto3.Query{String: "COPY pg_temp.copied FROM STDIN"}),
			append(many(50_000, &pgproto3.CopyData{Data: []byte("1\n")}, &pgproto3.Sync{}), many(1, &pgproto3.CopyDone{})...)...), 1},
	} {
		t.Run(name, func(t *testing.T) {
			b := append(append([]byte{}, many(1, pipelineSetUp...)...), c.b...)
			b = append(b, encoded(t, &pgproto3.Sync{}, &pgproto3.Query{String: "ROLLBACK"})...)
			same(t, pg, p, database, func(client *frontendtest.Client) (*digest, error) {
				sent := make(chan error, 1)
				go func() { sent <- client.Send(b) }()
				d, err := untilReady(client, c.ready+3)
				return d, errors.Join(err, <-sent)
			})
		})
	}
	epilogue(t, pg, p, database, 1)
}

// pipelineSetUp opens a transaction, so that a pipeline can be one batch or many.
var pipelineSetUp = []pgproto3.FrontendMessage{&pgproto3.Query{String: "BEGIN; CREATE TEMP TABLE copied (i int) ON COMMIT DROP"}}

// TestAClientThatReadsNothingForALongTime sends requests with megabytes of answers, and
// reads only when nothing can be sent any more.
func TestAClientThatReadsNothingForALongTime(t *testing.T) {
	pg := testpg.ForTest(t)
	database := pg.Database(t)
	p := testpg.Pgebb(t, pg.Options(database, "transaction", 1))
	request := encoded(t, append(batch("SELECT repeat('r', 50000), $1", string(bytes.Repeat([]byte("p"), 20_000))), &pgproto3.Sync{})...)
	const n = 400 // 8 MB there, 28 MB back
	same(t, pg, p, database, func(c *frontendtest.Client) (*digest, error) {
		// Both directions fill up, and the write times out; what was written then counts.
		b := bytes.Repeat(request, n)
		_ = c.SetWriteDeadline(time.Now().Add(300 * time.Millisecond))
		written, err := c.Write(b)
		if err == nil {
			return nil, fmt.Errorf("%d bytes are taken of who reads nothing", len(b))
		}
		sent := make(chan error, 1)
		go func() { sent <- c.Send(b[written:]) }()
		d, err := untilReady(c, n)
		return d, errors.Join(err, <-sent)
	})
	epilogue(t, pg, p, database, 1)
}
