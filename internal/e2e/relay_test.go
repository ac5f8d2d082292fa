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
	want, err := do(connect(t, direct(pg, database)))
	if err != nil {
		t.Fatalf("directly: %v", err)
	}
	got, err := do(connect(t, locally(p, database)))
	if err != nil {
		t.Fatalf("through pgebb: %v\ndirectly: %v", err, want)
	}
	if got.String() != want.String() {
		t.Fatalf("pgebb says %v\nPostgres says %v", got, want)
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
