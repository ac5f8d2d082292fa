package backend

import (
	"fmt"

	"github.com/pgebb/pgebb/internal/wire"
)

// exchange is a run of messages of our own whose answers are not the client's.
// While there is one, the client must not send anything to the server.
type exchange struct {
	left     int // ReadyForQuery messages still to come
	total    int
	failures []Failure
	// probe is set while the answers that come before ours are the client's.
	probe  bool
	answer *answer // where rows go; nil if they are not wanted
	done   func(failures []Failure)
	lost   func(reason error) // called in place of done when the server is lost; may be nil
}

// Failure is the ErrorResponse to one of several queries of our own.
type Failure struct {
	Query int    // its index
	Body  []byte // of the ErrorResponse
}

// Code is the SQLSTATE, empty when the server gave none.
func (f Failure) Code() string { return string(wire.ErrorField(f.Body, 'C')) }

func (f Failure) Error() string {
	return fmt.Sprintf("%s (SQLSTATE %s)", wire.ErrorField(f.Body, 'M'), f.Code())
}

// Ask sends queries of our own to a server that owes nothing; done is called
// with those that failed, in order, when all are answered. Should the server be
// lost before, done is not called.
func (s *Server) Ask(queries []string, done func(failures []Failure)) error {
	var b []byte
	for _, q := range queries {
		b = wire.AppendQuery(b, q)
	}
	s.Totals.LastSent = wire.Query
	return s.ask(b, len(queries), done)
}

// ask sends messages of our own that have n ReadyForQuery for an answer.
func (s *Server) ask(b []byte, n int, done func(failures []Failure)) error {
	s.exchange = &exchange{left: n, total: n, done: done}
	return s.Send(b)
}

// Send passes bytes on to Postgres. What it does not take now stays pending.
func (s *Server) Send(p []byte) error {
	s.Totals.Sent += uint64(len(p))
	return s.Write(p)
}

// Probe finds out whether Postgres has answered everything, see [Server.Unsure].
// Answers that still come are the client's. Its end is reported by
// [Client.Answered].
func (s *Server) Probe() error {
	s.exchange = &exchange{left: 1, total: 1, probe: true, done: func([]Failure) {
		s.settle()
		s.answered = true
	}}
	return s.Send(wire.AppendQuery(nil, ""))
}

// message follows an answer and says whether it is the client's.
func (e *exchange) message(s *Server, typ byte, body []byte, whole bool) (forward bool, err error) {
	if e.left == 0 {
		return false, fmt.Errorf("a message %q behind the last answer", typ)
	}
	if e.probe {
		// Only Syncs can be unanswered, so the first answer to an empty query is
		// the answer to ours.
		if typ != wire.EmptyQueryResponse {
			if typ == wire.ErrorResponse {
				s.failed = true
				s.countError(body)
			}
			return s.phase == phaseHeld, nil
		}
		e.probe = false
		return false, nil
	}
	switch typ {
	case wire.DataRow:
		if whole && e.answer != nil {
			e.answer.whole(body)
		}
	case wire.ErrorResponse:
		e.failures = append(e.failures, Failure{e.total - e.left, append([]byte(nil), body...)})
	case wire.ReadyForQuery:
		if !isStatus(body) {
			return false, errNoStatus
		}
		s.status = body[0]
		e.left--
	}
	return false, nil
}

// endExchange goes on with what the exchange was for.
func (s *Server) endExchange() {
	e := s.exchange
	s.exchange = nil
	e.done(e.failures)
	if s.exchange == nil && s.answered && s.phase == phaseHeld {
		s.answered = false
		s.client.Answered(s)
	}
}

// Apply gives the server's session the run-time parameters of a set that differs from
// [Server.Params] and that Postgres has accepted before. done is called when they are
// there, or with an error.
func (s *Server) Apply(want Set, done func(error)) error {
	return s.Ask([]string{changeSQL(s.params, want)}, func(failures []Failure) {
		if len(failures) > 0 {
			done(failures[0])
			return
		}
		s.params = want
		done(nil)
	})
}

// Refusal is a parameter that Postgres did not accept.
type Refusal struct {
	Param Param
	Failure
}

// Try gives the server's session the parameters of a StartupMessage, on top of
// none, each on its own. Those that Postgres refuses are given to done; after it
// [Server.Params] is the set as Postgres spells it. It returns true when there
// was nothing to do.
func (s *Server) Try(params []Param, done func([]Refusal)) (ready bool, err error) {
	var queries []string
	if s.params != (Set{}) {
		queries = append(queries, changeSQL(s.params, Set{}))
	}
	skip := len(queries)
	for _, p := range params {
		queries = append(queries, "SELECT "+setConfig(p.Name, quote(p.Value)))
	}
	if len(queries) == 0 {
		return true, nil
	}
	return false, s.Ask(queries, func(failures []Failure) {
		if skip > 0 && (len(failures) == 0 || failures[0].Query >= skip) {
			s.forget()
		}
		s.tried(params, failures, skip, done)
	})
}

// forget drops what is known of parameters that Postgres does not report; those
// that it reports were followed.
func (s *Server) forget() {
	kept := Set{}
	for _, p := range s.params.Params() {
		if _, reported := s.Greeting.base.Get(p.Name); reported {
			kept = kept.With(p.Name, p.Value)
		}
	}
	s.params = kept
}

func (s *Server) tried(params []Param, failures []Failure, skip int, done func([]Refusal)) {
	var refused []Refusal
	for i, p := range params {
		if j := indexFailure(failures, i+skip); j >= 0 {
			refused = append(refused, Refusal{p, failures[j]})
			continue
		}
		if _, reported := s.Greeting.base.Get(p.Name); !reported {
			s.params = s.params.With(p.Name, p.Value)
		}
	}
	done(refused)
}

func indexFailure(failures []Failure, query int) int {
	for i, f := range failures {
		if f.Query == query {
			return i
		}
	}
	return -1
}
