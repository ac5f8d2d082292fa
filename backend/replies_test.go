package backend

import (
	"strings"
	"testing"

	"github.com/pgebb/pgebb/cache"
	"github.com/pgebb/pgebb/internal/wire"
)

// holder is a client that takes everything.
type holder struct{ got strings.Builder }

func (h *holder) FromServer(p []byte)       { h.got.Write(p) }
func (h *holder) Blocked() bool             { return false }
func (h *holder) ParameterChanged(*Server)  {}
func (h *holder) Answered(*Server)          {}
func (h *holder) ServerTakes(*Server)       {}
func (h *holder) ServerLost(*Server, error) {}

func (h *holder) Hears(wire.Notification) bool { return true }

func (h *holder) Undefine(string, *cache.Statement)     {}
func (h *holder) Restore(string, *cache.Statement) bool { return false }
func (h *holder) UndefineAll()                          {}

// nobody is an owner that counts errors.
type nobody struct {
	Owner
	refused ErrorCodes
}

func (n *nobody) Refused(code []byte) { n.refused.Count(code) }

// held is a server in the hands of a client, without a connection.
func held() *Server {
	s := &Server{phase: phaseHeld, client: &holder{}, owner: &nobody{}, status: wire.Idle, Stats: &Counters{}, Greeting: NewGreeting(nil)}
	s.ops.clear()
	return s
}

// play runs a script of one-letter messages: those behind ">" are sent to
// Postgres, those behind "<" come from it; Z takes the status behind it, "Ds" is a
// Describe of a statement, "Dp" one of a portal, "Hx" a Flush with a body.
func play(t *testing.T, s *Server, script string) {
	t.Helper()
	for _, part := range strings.Fields(script) {
		sent, typ, rest := part[0] == '>', part[1], part[2:]
		if sent {
			body := []byte("x")
			switch {
			case rest == "s":
				body = []byte("S")
			case rest == "" && (typ == wire.Flush || typ == wire.Sync):
				body = nil
			}
			s.Sent(typ, body)
			continue
		}
		body := []byte(rest)
		if typ == wire.ErrorResponse {
			body = []byte("C22012\x00Mdivision by zero\x00\x00")
		}
		if _, err := s.message(typ, body, true); err != nil {
			t.Fatalf("%s: %v", part, err)
		}
	}
}

func TestAServerIsSettledWhenEverythingIsAnswered(t *testing.T) {
	for name, c := range map[string]struct {
		script  string
		settled bool
	}{
		"nothing sent":                           {"", true},
		"a query under way":                      {">Q", false},
		"a query that was answered":              {">Q <T <D <CSELECT <ZI", true},
		"a query in a transaction":               {">Q <CBEGIN <ZT", false},
		"a failed transaction":                   {">Q <E <ZE", false},
		"an empty query":                         {">Q <I <ZI", true},
		"the first of two queries":               {">Q >Q <CSELECT <ZI", false},
		"two queries":                            {">Q >Q <CSELECT <ZI <CSELECT <ZI", true},
		"several results of one query":           {">Q <CSELECT <CSELECT <ZI", true},
		"an extended batch":                      {">P >B >Dp >E >S <1 <2 <T <D <CSELECT <ZI", true},
		"a batch without its Sync":               {">P >B >E >H <1 <2 <CSELECT", false},
		"a batch with a late Sync":               {">P >B >E >H <1 <2 <CSELECT >S <ZI", true},
		"a Sync alone":                           {">S <ZI", true},
		"three Syncs, two answered":              {">S >S >S <ZI <ZI", false},
		"a Describe of a statement":              {">P >Ds >S <1 <t <T <ZI", true},
		"a Describe of a statement without rows": {">P >Ds >S <1 <t <n <ZI", true},
		"a portal that was suspended":            {">P >B >E >H <1 <2 <D <s >E >S <CSELECT <ZI", true},
		"a Close":                                {">C >S <3 <ZI", true},
		"a function call":                        {">F <V <ZI", true},
		"a function call that fails":             {">F <E <ZI", true},
		"an error skips to the Sync":             {">P >B >E >P >B >E >S <1 <2 <E <ZI", true},
		"an error before the Sync is sent":       {">P <E", false},
		"what follows an error is not answered":  {">P <E >B >E >S <ZI", true},
		"a Query is ignored after an error":      {">P <E >Q >S <ZI", true},
		"two batches, the first fails":           {">P >B >E >S >P >B >E >S <E <ZI <1 <2 <CSELECT <ZI", true},
		"two batches, half answered":             {">P >B >E >S >P >B >E >S <E <ZI <1 <2", false},
		"an error at the Sync":                   {">P >B >E >S <1 <2 <CINSERT <E <ZI", true},
		"a Query in the middle of a batch":       {">P >B >Q <1 <2 <CSELECT <ZI", true},
		"a Query behind a failed batch":          {">P >B >Q >S <E <ZI", true},
		"COPY OUT":                               {">Q <H <d <d <c <CCOPY <ZI", true},
		"COPY IN, simple":                        {">Q <G >d >d >c <CCOPY <ZI", true},
		"COPY IN under way":                      {">Q <G >d", false},
		"COPY IN that the client gives up":       {">Q <G >d >f <E <ZI", true},
		"COPY IN that fails at once":             {">Q <E <ZI >d >d >c", true},
		"COPY IN that fails, the end comes late": {">Q <G >d <E <ZI >d >c", true},
		"two COPYs in one query":                 {">Q <G >d >c <CCOPY <G >d >c <CCOPY <ZI", true},
		"COPY IN sent without waiting":           {">Q >d >c >Q <G <CCOPY <ZI <CSELECT <ZI", true},
		"COPY IN, extended":                      {">P >B >E >H <1 <2 <G >d >c >S <CCOPY <ZI", true},
		"COPY IN reads the Sync":                 {">P >B >E >S <1 <2 <G >d >c >S <CCOPY <ZI", true},
		"COPY IN reads the Sync, more to come":   {">P >B >E >S <1 <2 <G >d >c >S <CCOPY", false},
		"COPY IN, extended, given up":            {">P >B >E >H <1 <2 <G >d >f >S <E <ZI", true},
		"COPY IN that may have read the Sync":    {">P >B >E >S <1 <2 <G >d <E >c >S <ZI", false},
		"COPY IN that has not read the Sync":     {">P >B >E >S <1 <2 <G >d <E >c >S <ZI <ZI", true},
		"a batch behind a COPY IN that fails":    {">P >B >E >S >d >c >S >P >B >E >S <1 <2 <G <E <ZI <1 <2 <CSELECT <ZI", true},
		"an empty query behind it":               {">P >B >E >S >d >c >S >Q <1 <2 <G <E <ZI <I <ZI", true},
		"an empty query before it is answered":   {">P >B >E >S >d >c >S >Q <1 <2 <G <E <ZI", false},
		"COPY IN, simple, with Syncs, fails":     {">Q >S >S <G <E <ZI >c >Q <CSELECT <ZI", true},
		"COPY IN, simple, with a Sync left":      {">Q >S >S <G <E <ZI <ZI >c >Q <CSELECT <ZI", true},
		"a COPY IN behind one that fails":        {">Q >S >c >Q >S >c <G <E <ZI <G <CCOPY <ZI", true},
		"two COPY INs that fail":                 {">Q >S >c >Q >S >c <G <E <ZI <G <E <ZI <ZI", true},
		"a Query instead of a Sync":              {">P >B >E >S <1 <2 <G >d <E >Q <ZI", false},
		"a batch instead of a Sync":              {">P >B >E >S >c >P >B >E >S <1 <2 <G <E <ZI", false},
		"a Flush that is malformed":              {">P >B >E >Hx >P >S <1 <2 <CSELECT <E <ZI", true},
		"a Sync that is malformed":               {">P >B >E >Sx >S <1 <2 <CSELECT <E <ZI <ZI", true},
		"a Query inside of COPY IN":              {">Q <G >d >Q <E <ZI", false},
		"an answer that nobody asked for":        {">Q <CSELECT <ZI <ZI", false},
	} {
		t.Run(name, func(t *testing.T) {
			s := held()
			play(t, s, c.script)
			if got := s.Settled(); got != c.settled {
				t.Errorf("after %q: settled = %v, want %v (%d answers outstanding, %d of them doubtful, open %v, skipping %v, lost %v)",
					c.script, got, c.settled, s.ops.len(), s.doubtful, s.open, s.skipping, s.lost)
			}
		})
	}
}

func TestAServerIsUnsureOnlyAfterACopyThatMayHaveReadASync(t *testing.T) {
	s := held()
	play(t, s, ">P >B >E >S <1 <2 <G >d <E >c >S")
	if s.Unsure() {
		t.Error("a probe before the ReadyForQuery would be ignored by Postgres")
	}
	play(t, s, "<ZI")
	if !s.Unsure() {
		t.Error("the server is sure, though a Sync may be unanswered")
	}
}

func TestNothingIsOutstandingWhileAServerIsUnsure(t *testing.T) {
	for script, unsure := range map[string]bool{
		">P >B >E >S >d >c >S <1 <2 <G <E <ZI":          true,
		">P >B >E >S >d >c >S >Q <1 <2 <G <E <ZI":       false, // an empty query's answer would be taken for the probe's
		">P >B >E >S >d >c >S >P >H <1 <2 <G <E <ZI <1": false,
		">P >B >E >S >c >P >B >E >S <1 <2 <G <E <ZI":    false, // the batch was skipped or not
		">Q >S >S >c <G <E <ZI":                         true,
		">Q >S >S >c <G <E <ZI <ZI":                     true,
		">Q >S >S >c <G <E <ZI <ZI <ZI":                 false, // all are answered
		">Q >S >S >c >Q <G <E <ZI <ZI":                  false,
		">Q >S >c <G <E <ZE":                            false, // in a transaction that has failed
		">Q >S >c >Q <G <E <ZI <G":                      false, // a probe would be an error inside of a COPY
	} {
		s := held()
		play(t, s, script)
		if s.Unsure() != unsure {
			t.Errorf("after %q: unsure = %v, want %v", script, s.Unsure(), unsure)
		}
	}
}

func TestManySyncsInACopyAreCountedInNoTime(t *testing.T) {
	const n = 1_000_000 // the square of which is too much for any patience
	s := held()
	play(t, s, ">Q <G")
	for range n {
		s.Sent(wire.Sync, nil)
	}
	play(t, s, "<E <ZI >c")
	for range n {
		play(t, s, "<ZI")
	}
	if !s.Settled() {
		t.Error("not settled though everything is answered")
	}
}

func TestALongPipelineIsCountedAndItsMemoryGivenBack(t *testing.T) {
	s := held()
	for range 10_000 {
		s.Sent(wire.Query, nil)
	}
	for i := range 10_000 {
		if s.Settled() {
			t.Fatalf("settled with %d answers outstanding", 10_000-i)
		}
		play(t, s, "<CSELECT <ZI")
	}
	if !s.Settled() {
		t.Error("not settled though everything is answered")
	}
	if cap(s.ops.q) > len(s.ops.inline) {
		t.Errorf("%d bytes are kept", cap(s.ops.q))
	}
}
