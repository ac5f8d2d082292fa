package backend

import (
	"context"
	"fmt"
	"io"
	"testing"

	"github.com/pgebb/pgebb/internal/wire"
)

func TestLookUpReadsOneRow(t *testing.T) {
	dataRow := func(body string) []byte { return wire.AppendRaw(nil, wire.DataRow, []byte(body)) }
	failure := wire.AppendFields(nil, wire.ErrorResponse, wire.Field{Type: 'C', Value: "42703"}, wire.Field{Type: 'M', Value: "no such column"})
	one := dataRow("\x00\x02\x00\x00\x00\x01a\xff\xff\xff\xff")
	for name, c := range map[string]struct {
		answer [][]byte
		want   string
		fails  bool
	}{
		"no row":           {[][]byte{ready}, "[]", false},
		"a row and a NULL": {[][]byte{one, ready}, `["a" ""]`, false},
		"two rows":         {[][]byte{one, one, ready}, "", true},
		"an error":         {[][]byte{failure, ready}, "", true},
		"an end":           {[][]byte{one}, "", true},
		"a length too far": {[][]byte{dataRow("\x00\x01\x00\x00\x00\x09a"), ready}, "", true},
		"no length":        {[][]byte{dataRow("\x00\x01\x00"), ready}, "", true},
		"a bad length":     {[][]byte{dataRow("\x00\x01\xff\xff\xff\xfe"), ready}, "", true},
		"no columns":       {[][]byte{dataRow("\x00"), ready}, "", true},
		"too much":         {[][]byte{[]byte("D\x7f\xff\xff\xff")}, "", true},
	} {
		sent := make(chan string, 1)
		target := listen(t, "tcp", "127.0.0.1:0", func(s *script) {
			s.startup()
			s.send(letIn, ready)
			b := make([]byte, len(appendLookUp(nil, "SELECT $1", "ann")))
			_, _ = io.ReadFull(s, b)
			sent <- string(b)
			s.send(c.answer...)
		})
		row, err := LookUp(context.Background(), target, "SELECT $1", "ann")
		if (err != nil) != c.fails || err == nil && fmt.Sprintf("%q", row) != c.want {
			t.Errorf("%s: %q, %v", name, row, err)
		}
		if got := <-sent; got[0] != wire.Parse || got != string(appendLookUp(nil, "SELECT $1", "ann")) {
			t.Errorf("%s: Postgres is sent %q", name, got)
		}
	}
}

func FuzzValues(f *testing.F) {
	f.Add([]byte("\x00\x02\x00\x00\x00\x01a\xff\xff\xff\xff"))
	f.Add([]byte("\xff\xff"))
	f.Fuzz(func(t *testing.T, body []byte) {
		row, err := values(body)
		if err != nil {
			return
		}
		total := 2
		for _, v := range row {
			total += 4 + len(v)
		}
		if total > len(body) {
			t.Fatalf("of %d bytes %d are read", len(body), total)
		}
	})
}
