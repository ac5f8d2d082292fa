package backend

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/pgebb/pgebb/internal/wire"
)

// answers is what Postgres says to a batch, with a bit of everything.
func answers() []byte {
	var b []byte
	for _, m := range []pgproto3.BackendMessage{
		&pgproto3.ParseComplete{}, &pgproto3.BindComplete{},
		&pgproto3.RowDescription{Fields: []pgproto3.FieldDescription{{Name: []byte("a"), DataTypeOID: 25}}},
		&pgproto3.DataRow{Values: [][]byte{[]byte("x"), nil}}, &pgproto3.DataRow{Values: [][]byte{bytes.Repeat([]byte("y"), 40)}},
		&pgproto3.NoticeResponse{Severity: "NOTICE", Code: "00000", Message: "by the way"},
		&pgproto3.CommandComplete{CommandTag: []byte("SELECT 2")},
		&pgproto3.ParameterStatus{Name: "TimeZone", Value: "CET"},
		&pgproto3.ReadyForQuery{TxStatus: 'I'},
	} {
		b, _ = m.Encode(b) // they are all well-formed
	}
	return b
}

// batch notes what these are the answers to.
func batch(s *Server) {
	for _, typ := range []byte{wire.Parse, wire.Bind, wire.Describe, wire.Execute, wire.Sync} {
		s.Sent(typ, []byte("P"))
	}
}

// feed gives a server input in pieces, as the event loop does.
func feed(t *testing.T, s *Server, pieces ...[]byte) error {
	t.Helper()
	for _, p := range pieces {
		b := append(append([]byte(nil), s.held...), p...)
		s.held = nil
		if err := s.scan(b); err != nil {
			return err
		}
	}
	return nil
}

func TestAnswersArePassedOnUnchangedHoweverTheyAreCut(t *testing.T) {
	all := answers()
	for cut := range len(all) + 1 {
		s := held()
		batch(s)
		if err := feed(t, s, all[:cut], all[cut:]); err != nil {
			t.Fatal(err)
		}
		if got := s.client.(*holder).got.String(); got != string(all) {
			t.Fatalf("cut at %d: %q is passed on, want %q", cut, got, all)
		}
		if !s.Settled() {
			t.Fatalf("cut at %d: not settled", cut)
		}
		if tz, _ := s.params.Get("TimeZone"); tz != "CET" {
			t.Fatalf("cut at %d: TimeZone is %q", cut, tz)
		}
	}
	s := held()
	batch(s)
	for i := range all {
		if err := feed(t, s, all[i:i+1]); err != nil {
			t.Fatal(err)
		}
	}
	if got := s.client.(*holder).got.String(); got != string(all) || !s.Settled() {
		t.Errorf("in single bytes: %q is passed on, settled %v", got, s.Settled())
	}
}

func TestAnswersToOurOwnQueriesAreNotPassedOn(t *testing.T) {
	own := wire.AppendReadyForQuery(wire.AppendRaw(wire.AppendRaw(nil, wire.DataRow, []byte{0, 0}), wire.CommandComplete, []byte("SELECT 1\x00")), wire.Idle)
	theirs := answers()
	for cut := range len(own) + 1 {
		s := held()
		done := false
		s.exchange = &exchange{left: 1, total: 1, done: func(failures []Failure) { done = len(failures) == 0 }}
		if err := feed(t, s, own[:cut], own[cut:]); err != nil {
			t.Fatal(err)
		}
		s.afterScan()
		if got := s.client.(*holder).got.String(); got != "" || !done {
			t.Fatalf("cut at %d: %q is passed on, done %v", cut, got, done)
		}
		batch(s)
		if err := feed(t, s, theirs); err != nil {
			t.Fatal(err)
		}
		if got := s.client.(*holder).got.String(); got != string(theirs) {
			t.Fatalf("cut at %d: behind it %q is passed on", cut, got)
		}
	}
}

func TestAnAnswerTooManyToOurOwnQueryEndsTheServer(t *testing.T) {
	own := wire.AppendReadyForQuery(wire.AppendRaw(nil, wire.CommandComplete, []byte("SELECT 1\x00")), wire.Idle)
	s := held()
	s.exchange = &exchange{left: 1, total: 1, done: func([]Failure) {}}
	if err := feed(t, s, append(own, own...)); err == nil {
		t.Error("it is accepted, and the end of the exchange is missed")
	}
}

func TestALargeMessageIsStreamedAndNotKept(t *testing.T) {
	s := held()
	s.Sent(wire.Query, nil)
	row := wire.AppendRaw(nil, wire.DataRow, bytes.Repeat([]byte("z"), 10<<20))
	for len(row) > 0 {
		n := min(len(row), 64<<10)
		if err := feed(t, s, row[:n]); err != nil {
			t.Fatal(err)
		}
		if len(s.held) > 0 {
			t.Fatalf("%d bytes are kept", len(s.held))
		}
		row = row[n:]
	}
	if got := s.client.(*holder).got.Len(); got != 10<<20+wire.HeaderSize {
		t.Errorf("%d bytes are passed on", got)
	}
}

func TestIllegalLengthsEndTheServer(t *testing.T) {
	for _, b := range [][]byte{{'D', 0, 0, 0, 0}, {'D', 0, 0, 0, 3}, {'D', 0xff, 0xff, 0xff, 0xff}, {'Z', 0, 0, 0, 4}, {'Z', 0, 0, 0, 6, 'I', 'I'}} {
		s := held()
		s.Sent(wire.Query, nil)
		if err := feed(t, s, b); err == nil {
			t.Errorf("%q is accepted", b)
		}
	}
}

func TestWhatAnIdleServerSays(t *testing.T) {
	fatal, _ := (&pgproto3.ErrorResponse{Severity: "FATAL", Code: "57P01", Message: "terminating connection"}).Encode(nil)
	for name, c := range map[string]struct {
		said []byte
		ends bool
	}{
		"a parameter":    {wire.AppendParameterStatus(nil, "TimeZone", "CET"), false},
		"a notice":       {wire.AppendFields(nil, wire.NoticeResponse, wire.Field{Type: 'M', Value: "x"}), false},
		"a notification": {wire.AppendRaw(nil, wire.NotificationResponse, []byte("\x00\x00\x00\x01c\x00\x00")), false},
		"a farewell":     {fatal, true},
		"a row":          {wire.AppendRaw(nil, wire.DataRow, []byte{0, 0}), true},
		"a ready":        {wire.AppendReadyForQuery(nil, 'I'), true},
	} {
		s := held()
		s.phase, s.client = phaseIdle, nil
		if err := feed(t, s, c.said); (err != nil) != c.ends {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// FuzzScan: whatever comes, in whatever pieces, is passed on as it is or ends the
// server; and what is passed on does not depend on the pieces.
func FuzzScan(f *testing.F) {
	f.Add(answers(), uint64(1))
	f.Add([]byte("E\x00\x00\x00\x06C\x00Z\x00\x00\x00\x05I"), uint64(2))
	f.Add([]byte("G\x00\x00\x00\x07\x00\x00\x00Z\x00\x00\x00\x05T"), uint64(3))
	f.Add([]byte("S\x00\x00\x00\x04S\x00\x00\x00\x06a\x00"), uint64(4))
	f.Fuzz(func(t *testing.T, input []byte, seed uint64) {
		play := func(pieces [][]byte) string {
			s := held()
			batch(s)
			for _, p := range pieces {
				if err := feed(t, s, p); err != nil {
					return fmt.Sprint("ends: ", err)
				}
				if len(s.held) > maxWhole {
					t.Fatalf("%d bytes are kept", len(s.held))
				}
			}
			return fmt.Sprintf("%q %v %v %q", s.client.(*holder).got.String(), s.Settled(), s.params.Params(), s.held)
		}
		var pieces [][]byte
		r := rand.New(rand.NewPCG(seed, 0))
		for rest := input; len(rest) > 0; {
			n := 1 + r.IntN(len(rest))
			pieces, rest = append(pieces, rest[:n]), rest[n:]
		}
		whole, cut := play([][]byte{input}), play(pieces)
		if whole != cut && !bytes.Contains([]byte(whole+cut), []byte("ends: ")) {
			t.Fatalf("in one piece: %s\nin %d: %s", whole, len(pieces), cut)
		}
	})
}
