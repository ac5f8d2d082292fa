package e2e

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/pgebb/pgebb/frontend/frontendtest"
	"github.com/pgebb/pgebb/internal/testpg"
)

// encoded is messages as they go over the wire.
func encoded(t *testing.T, messages ...pgproto3.FrontendMessage) []byte {
	t.Helper()
	var b []byte
	for _, m := range messages {
		var err error
		if b, err = m.Encode(b); err != nil {
			t.Fatal(err)
		}
	}
	return b
}

// batch is a statement by the extended protocol, without a Sync.
func batch(sql string, values ...string) []pgproto3.FrontendMessage {
	bind := &pgproto3.Bind{}
	for _, v := range values {
		bind.Parameters = append(bind.Parameters, []byte(v))
	}
	return []pgproto3.FrontendMessage{&pgproto3.Parse{Query: sql}, bind, &pgproto3.Describe{ObjectType: 'P'}, &pgproto3.Execute{}}
}

// digest is what a client was told, in little room: how many messages of each type, and
// a hash of all as [frontendtest.Message.Show] shows them.
type digest struct {
	count map[byte]int
	sum   hash.Hash
	last  string
}

func newDigest() *digest { return &digest{map[byte]int{}, sha256.New(), ""} }

func (d *digest) add(m frontendtest.Message) {
	d.count[m.Type]++
	d.last = m.Show()
	fmt.Fprintln(d.sum, d.last)
}

func (d *digest) String() string {
	var counts strings.Builder
	for typ := range 256 {
		if n := d.count[byte(typ)]; n > 0 {
			fmt.Fprintf(&counts, "%c×%d ", typ, n)
		}
	}
	return fmt.Sprintf("%s(sha256 %x, last %.300s)", counts.String(), d.sum.Sum(nil)[:6], d.last)
}

// untilReady reads up to the n-th ReadyForQuery.
func untilReady(c *frontendtest.Client, n int) (*digest, error) {
	d := newDigest()
	for d.count['Z'] < n {
		m, err := c.Receive()
		if err != nil {
			return d, fmt.Errorf("after %v: %w", d, err)
		}
		d.add(m)
	}
	return d, nil
}

// untilEnd reads up to the end of the stream.
func untilEnd(c *frontendtest.Client) (*digest, error) {
	d := newDigest()
	for {
		m, err := c.Receive()
		if errors.Is(err, io.EOF) {
			return d, nil
		}
		if err != nil {
			return d, fmt.Errorf("after %v: %w", d, err)
		}
		d.add(m)
	}
}

// locally is how to log in to pgebb at its Unix socket, which takes little at once.
func locally(p *testpg.Process, database string) frontendtest.Login {
	return frontendtest.Login{Network: "unix", Address: fmt.Sprintf("%s/.s.PGSQL.%d", p.Dir, p.Port), User: database, Password: database, Database: database}
}

// same has a client do something directly and through pgebb, with the same outcome.
func same(t *testing.T, pg *testpg.Server, p *testpg.Process, database string, do func(c *frontendtest.Client) (*digest, error)) {
	t.Helper()
	var outcomes []string
	for _, login := range []frontendtest.Login{direct(pg, database), locally(p, database)} {
		c := connect(t, login)
		d, err := do(c)
		c.Close()
		if err != nil {
			t.Fatalf("%s: %v", login.Address, err)
		}
		outcomes = append(outcomes, d.String())
	}
	if outcomes[0] != outcomes[1] {
		t.Fatalf("Postgres says %s\npgebb says %s", outcomes[0], outcomes[1])
	}
}

// TestWhoHasSaidGoodbyeGetsAllAnswers: a client that says no more and reads slowly.
func TestWhoHasSaidGoodbyeGetsAllAnswers(t *testing.T) {
	pg := testpg.ForTest(t)
	database := pg.Database(t)
	p := testpg.Pgebb(t, pg.Options(database, "transaction", 1))
	for name, end := range map[string]func(c *frontendtest.Client) error{
		"with a Terminate": func(c *frontendtest.Client) error { return c.Say(&pgproto3.Terminate{}) },
		"by hanging up":    func(c *frontendtest.Client) error { return c.HalfClose() },
		"in the middle of a message": func(c *frontendtest.Client) error {
			return errors.Join(c.Send([]byte("Q\x00\x00")), c.HalfClose())
		},
	} {
		for i := range 5 {
			same(t, pg, p, database, func(c *frontendtest.Client) (*digest, error) {
				err := c.Say(&pgproto3.Query{String: fmt.Sprintf("SELECT i, repeat('x', %d) FROM generate_series(1, 3000) i", 1000+i)})
				if err := errors.Join(err, end(c)); err != nil {
					return nil, fmt.Errorf("%s: %w", name, err)
				}
				return untilEnd(c)
			})
		}
	}
	epilogue(t, pg, p, database, 1)
}

// edges are lengths of messages at which something changes in somebody's buffers.
func edges() []int {
	var lengths []int
	for _, edge := range []int{1 << 10, 4 << 10, 8 << 10, 16 << 10, 64 << 10} {
		for d := -3; d <= 3; d++ {
			lengths = append(lengths, edge+d)
		}
	}
	return lengths
}

// padded makes a message whose length, with its header, is n, of what makes one with a
// filling.
func padded(t *testing.T, n int, message func(filling string) pgproto3.FrontendMessage) pgproto3.FrontendMessage {
	t.Helper()
	empty := len(encoded(t, message("")))
	return message(strings.Repeat("x", n-empty))
}

// TestRequestsOfEveryLength sends every message that can be long in lengths at the edges
// of buffers, in one pipeline that is cut in different ways.
func TestRequestsOfEveryLength(t *testing.T) {
	pg := testpg.ForTest(t)
	database := pg.Database(t)
	pg.Exec(t, database, "CREATE TABLE copied (i int, t text)", "ALTER TABLE copied OWNER TO "+database)
	p := testpg.Pgebb(t, pg.Options(database, "transaction", 1))
	var b []byte
	ready := 0
	add := func(messages ...pgproto3.FrontendMessage) { b = append(b, encoded(t, messages...)...) }
	for i, n := range edges() {
		name := fmt.Sprint("s", i)
		add(padded(t, n, func(x string) pgproto3.FrontendMessage { return &pgproto3.Query{String: "SELECT md5('" + x + "')"} }))
		add(padded(t, n, func(x string) pgproto3.FrontendMessage { return &pgproto3.Parse{Query: "SELECT md5('" + x + "')"} }))
		add(&pgproto3.Bind{}, &pgproto3.Execute{})
		add(padded(t, n, func(x string) pgproto3.FrontendMessage {
			return &pgproto3.Parse{Name: name, Query: "SELECT md5($1), md5('" + x + "')", ParameterOIDs: []uint32{25}}
		}))
		add(padded(t, n, func(x string) pgproto3.FrontendMessage {
			return &pgproto3.Bind{PreparedStatement: name, Parameters: [][]byte{[]byte(x)}}
		}))
		add(&pgproto3.Execute{}, &pgproto3.Close{ObjectType: 'S', Name: name}, &pgproto3.Sync{})
		add(&pgproto3.Query{String: "COPY copied FROM STDIN"})
		add(padded(t, n, func(x string) pgproto3.FrontendMessage { return &pgproto3.CopyData{Data: []byte("1\t" + x + "\n")} }))
		add(&pgproto3.CopyDone{}, &pgproto3.Query{String: "SELECT sum(i), md5(string_agg(t, ',')) FROM copied; TRUNCATE copied"})
		add(padded(t, n, func(x string) pgproto3.FrontendMessage {
			// md5 by its OID; the empty result format makes it text
			return &pgproto3.FunctionCall{Function: 2311, ArgFormatCodes: []uint16{0}, Arguments: [][]byte{[]byte(x)}}
		}))
		ready += 5
	}
	for _, chunk := range []int{0, 4093, 4096, 65536, 977} {
		same(t, pg, p, database, func(c *frontendtest.Client) (*digest, error) {
			c.Chunk = chunk
			sent := make(chan error, 1)
			go func() { sent <- c.Send(b) }()
			d, err := untilReady(c, ready)
			return d, errors.Join(err, <-sent)
		})
	}
	epilogue(t, pg, p, database, 1)
}

// TestAnswersOfEveryLength has Postgres send every message that can be long in such
// lengths.
func TestAnswersOfEveryLength(t *testing.T) {
	pg := testpg.ForTest(t)
	database := pg.Database(t)
	p := testpg.Pgebb(t, pg.Options(database, "transaction", 1))
	var b []byte
	ready := 0
	ask := func(sql string, args ...any) {
		b = append(b, encoded(t, &pgproto3.Query{String: fmt.Sprintf(sql, args...)})...)
		ready++
	}
	for _, n := range edges() {
		for d := -100; d <= -12; d += 11 { // what the rest of each message takes is not known exactly
			n := n + d
			ask("SELECT repeat('x', %d)", n)
			ask("DO $$ BEGIN RAISE NOTICE '%%', repeat('n', %d); END $$", n)
			ask("DO $$ BEGIN RAISE EXCEPTION 'short' USING DETAIL = repeat('d', %d), HINT = repeat('h', 1 + %d %% 7); END $$", n, n)
			ask("COPY (SELECT repeat('c', %d)) TO STDOUT", n)
		}
		columns := strings.Repeat(", 1", max(n/27-1, 1)) // each takes 27 bytes in the RowDescription
		ask("SELECT 1%s", columns[:min(len(columns), 3*1600)])
		ask("SET search_path = %s", strings.Repeat("a_schema, ", n/10)+"public")
		ask("SHOW search_path")
		b = append(b, encoded(t, batch("SELECT repeat('x', $1::int)", fmt.Sprint(n))...)...)
		b = append(b, encoded(t, &pgproto3.Sync{})...)
		ready++
	}
	same(t, pg, p, database, func(c *frontendtest.Client) (*digest, error) {
		sent := make(chan error, 1)
		go func() { sent <- c.Send(b) }()
		d, err := untilReady(c, ready)
		return d, errors.Join(err, <-sent)
	})
	epilogue(t, pg, p, database, 1)
}
