package backend

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/pgebb/pgebb/internal/wire"
)

// rowsOf is an answer with rows of one column.
func rowsOf(values ...string) []byte {
	var b []byte
	for _, v := range values {
		b, _ = (&pgproto3.DataRow{Values: [][]byte{[]byte(v)}}).Encode(b)
	}
	return wire.AppendReadyForQuery(wire.AppendRaw(b, wire.CommandComplete, []byte("SELECT 1\x00")), wire.Idle)
}

// TestRowsOfAnAnswerAreCollectedHoweverTheyAreCut, and of whatever size.
func TestRowsOfAnAnswerAreCollectedHoweverTheyAreCut(t *testing.T) {
	long := strings.Repeat("0123456789", maxWhole/5)
	all := rowsOf("a", long, "b", long+"!", "")
	for cut := 0; cut <= len(all); cut += 7 {
		for _, step := range []int{1000, 1 << 20} {
			s := held()
			a := &answer{}
			s.exchange = &exchange{left: 1, total: 1, answer: a, done: func([]Failure) {}}
			pieces := [][]byte{all[:cut]}
			for rest := all[cut:]; len(rest) > 0; {
				n := min(step, len(rest))
				pieces, rest = append(pieces, rest[:n]), rest[n:]
			}
			if err := feed(t, s, pieces...); err != nil {
				t.Fatal(err)
			}
			if len(a.rows) != 5 || a.rows[1][0] != long || a.rows[3][0] != long+"!" || a.rows[4][0] != "" || a.err != nil || s.exchange.left != 0 {
				t.Fatalf("cut at %d: %d rows, %v", cut, len(a.rows), a.err)
			}
			if got := s.client.(*holder).got.Len(); got != 0 {
				t.Fatalf("cut at %d: %d bytes are passed on", cut, got)
			}
		}
		if cut > 100 {
			cut += 997
		}
	}
}

func TestAnAnswerThatIsTooLargeIsNotKept(t *testing.T) {
	for what, all := range map[string][]byte{
		"one row":   rowsOf(strings.Repeat("x", maxAnswer)),
		"many rows": rowsOf(strings.Split(strings.Repeat("y", 2000)+strings.Repeat(","+strings.Repeat("y", 2000), maxAnswer/2000+1), ",")...),
	} {
		s := held()
		a := &answer{}
		s.exchange = &exchange{left: 1, total: 1, answer: a, done: func([]Failure) {}}
		for len(all) > 0 {
			n := min(len(all), 64<<10)
			if err := feed(t, s, all[:n]); err != nil {
				t.Fatal(err)
			}
			if m := s.Memory(); m.Buffers > 2*maxAnswer {
				t.Fatalf("%s: buffers of %d bytes", what, m.Buffers)
			}
			all = all[n:]
		}
		if !errors.Is(a.err, ErrAnswer) || len(a.rows) > 0 || a.open != nil || s.exchange.left != 0 {
			t.Errorf("%s: %d rows, %v", what, len(a.rows), a.err)
		}
	}
}

func TestAMalformedRowIsAnError(t *testing.T) {
	for _, body := range []string{"", "\x00", "\x00\x01", "\x00\x01\x00\x00\x00\x05abc", "\xff\xff"} {
		s := held()
		a := &answer{}
		s.exchange = &exchange{left: 1, total: 1, answer: a, done: func([]Failure) {}}
		row := wire.AppendRaw(nil, wire.DataRow, []byte(body))
		if err := feed(t, s, append(row, rowsOf("x")...)); err != nil {
			t.Fatal(err)
		}
		if a.err == nil {
			t.Errorf("%q is taken for %q", body, a.rows)
		}
	}
	if _, ok := readRow(bytes.Repeat([]byte{0}, 2)); !ok {
		t.Error("a row without columns is malformed")
	}
}
