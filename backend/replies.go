package backend

import (
	"errors"
	"fmt"

	"github.com/pgebb/pgebb/internal/wire"
)

// This file keeps the count of what Postgres owes. One thing cannot be counted:
// while Postgres reads COPY data it reads and ignores Syncs, and when the COPY
// then fails nobody but Postgres knows whether a Sync was read before or after.
// Such Syncs are doubtful from then on. An answer to what was sent behind them
// settles it; when there is nothing behind them a probe does, see exchange.go.

// Sent notes a message that was passed on to Postgres. body is what there is of
// it, at least its first byte if it has one.
func (s *Server) Sent(typ byte, body []byte) {
	s.Totals.LastSent = typ
	switch typ {
	case wire.Query, wire.FunctionCall:
		s.open = false
		s.expect(typ)
		s.seal()
	case wire.Sync:
		s.open = false
		s.skipping = false
		s.expect(typ)
		s.seal()
	case wire.Parse, wire.Bind, wire.Execute, wire.Close:
		s.open = true
		s.Stats.sent(typ)
		s.expect(typ)
	case wire.Describe:
		s.open = true
		if len(body) > 0 && body[0] == 'S' {
			typ = describeStatement
		}
		s.expect(typ)
	case wire.Flush:
		// It has no answer, but an error if it is malformed.
		if len(body) > 0 {
			s.open = true
			s.expect(typ)
		}
	case wire.CopyDone, wire.CopyFail:
		// Outside of a COPY they are read and ignored.
		if s.copyIn || s.ops.len() > 0 {
			s.expect(typ)
		}
	}
}

// expect queues a message for its answer.
func (s *Server) expect(op byte) {
	ends := op == wire.CopyDone || op == wire.CopyFail
	switch {
	case s.lost:
		return
	case s.skipping:
		// If a doubtful Sync is still to be answered, Postgres does not skip.
		s.lost = s.doubtful > 0 && !ends
		return
	case s.copyIn && !s.copyEnded:
		s.copyEnded = ends
		s.lost = !ends && op != wire.Sync
	}
	if op == wire.Sync {
		s.ops.pushSync(s.doubtful)
		return
	}
	s.ops.push(op)
}

// Settled reports whether Postgres has answered all that it was sent and is
// outside of a transaction.
func (s *Server) Settled() bool {
	return s.status == wire.Idle && !s.open && s.ops.len() == 0 && s.left == 0 && !s.skipping &&
		!s.copyIn && !s.copyBoth && !s.lost && s.exchange == nil && s.Pending() == 0
}

// Midway reports whether the client who holds the server has been given only a part of a
// message.
func (s *Server) Midway() bool { return s.left > 0 && !s.drop }

// Working reports whether answers are outstanding that are sure to come.
func (s *Server) Working() bool {
	return s.ops.len() > s.doubtful || s.copyIn || s.exchange != nil || s.Pending() > 0
}

// BetweenBatches reports whether what is sent next is not a part of something that has
// begun.
func (s *Server) BetweenBatches() bool { return !s.open && !s.skipping && !s.copyIn && s.left == 0 }

// Unsure reports that only a probe can tell whether Postgres has answered
// everything, and that this is the moment for it: nothing but doubtful Syncs can be
// unanswered, and Postgres is not skipping anything.
func (s *Server) Unsure() bool {
	return s.doubtful > 0 && s.ops.len() == s.doubtful && !s.lost && !s.failed && !s.skipping && s.status == wire.Idle && !s.open &&
		!s.copyIn && s.left == 0 && s.exchange == nil && s.Pending() == 0
}

// message follows one message of Postgres; forward says whether it is the
// client's.
func (s *Server) message(typ byte, body []byte, whole bool) (forward bool, err error) {
	s.Totals.LastReceived = typ
	switch typ {
	case wire.ParameterStatus:
		if whole {
			s.parameterStatus(body)
		}
	case wire.NotificationResponse:
		// A notification is for whoever listens; that is never the next client.
		return whole && s.hears(body), nil
	case wire.NoticeResponse:
	default:
		if s.phase == phaseIdle {
			return false, s.unsolicited(typ, body)
		}
		if s.exchange != nil {
			return s.exchange.message(s, typ, body, whole)
		}
		forward, err := s.answer(typ, body)
		if err != nil || !forward {
			return false, err
		}
	}
	return s.phase == phaseHeld && s.exchange == nil, nil
}

// farewell is why Postgres ends a connection that is idle.
type farewell struct{ code, message string }

func (f *farewell) Error() string {
	return fmt.Sprintf("Postgres closed it: %s (SQLSTATE %s)", f.message, f.code)
}

// unsolicited is for what an idle server says. An ErrorResponse is its farewell.
func (s *Server) unsolicited(typ byte, body []byte) error {
	if typ == wire.ErrorResponse {
		return &farewell{string(wire.ErrorField(body, 'C')), string(wire.ErrorField(body, 'M'))}
	}
	return errors.New("a message that nobody asked for, type " + string(rune(typ)))
}

func (s *Server) parameterStatus(body []byte) {
	name, rest, ok := wire.CString(body)
	if !ok {
		return
	}
	value, _, ok := wire.CString(rest)
	if !ok {
		return
	}
	before := s.params
	s.params = s.Greeting.reported(s.params, string(name), string(value))
	if s.phase == phaseHeld && s.exchange == nil && before != s.params {
		s.client.ParameterChanged(s)
	}
}

// answer takes a message off what Postgres owes; forward is false if it is the answer to
// a message of ours.
func (s *Server) answer(typ byte, body []byte) (forward bool, err error) {
	if s.lost {
		return true, s.answerUncounted(typ, body)
	}
	if s.ops.first() == doubtfulSync && typ != wire.ReadyForQuery {
		s.settle()
	}
	first := s.ops.first()
	if first == opOurQuery || first == opOurSync && typ == wire.ReadyForQuery {
		return false, s.ourAnswer(first, typ, body)
	}
	if s.carried(first, typ) {
		return false, nil
	}
	switch typ {
	case wire.DataRow, wire.CopyData, wire.ParameterDescription, wire.FunctionCallResponse, wire.CopyOutResponse, wire.CopyDone:
	case wire.ParseComplete, wire.BindComplete, wire.CloseComplete:
		return s.completed(typ, first), nil
	case wire.RowDescription, wire.NoData:
		if first == wire.Describe || first == describeStatement {
			s.popOp()
		}
	case wire.CommandComplete, wire.EmptyQueryResponse, wire.PortalSuspended:
		if typ == wire.CommandComplete {
			s.command(body)
		}
		if first == wire.Execute {
			s.popOp()
		}
	case wire.ErrorResponse:
		if s.oursFails(first) {
			s.injectionFailed(body)
			s.skip()
			return false, nil
		}
		s.stale(first, body)
		renamed := s.renamedError(first, body)
		s.failedAnswer(first, body)
		if renamed != nil {
			s.made = append(s.made, renamed...)
			return false, nil
		}
	case wire.CopyInResponse:
		s.copyIn = true
		end, _, illegal := s.ops.copyEnd()
		s.copyEnded, s.lost = end >= 0, illegal
		s.answered = true // who waits for an answer has one
	case wire.CopyBothResponse:
		s.copyBoth = true
	case wire.ReadyForQuery:
		err := s.ready(first, body)
		return !s.holdReady(), err
	}
	return true, nil
}

// popOp takes the first message off the queue, and with it what Postgres reads
// and ignores behind it, and what is answered here.
func (s *Server) popOp() {
	s.ops.pop()
	s.makeAnswers()
}

// command reads the tag of a CommandComplete.
func (s *Server) command(tag []byte) {
	if s.ops.first() == opPrepare {
		s.records.first().st = nil // nothing takes that back
	}
	s.Stats.command(tag, s.copyIn)
	if s.copyIn {
		s.copyIn = false
		s.ops.dropCopyEnd()
		if s.ops.first() == wire.Execute && s.ops.ends == 0 {
			s.open = true // a Sync that the COPY has read has ended nothing
		}
	}
	s.copyBoth = false
	if alters(tag) {
		s.altered = true
		s.registry().Altered() // for what its client prepares in this transaction
	}
	if !s.recovery.Judged {
		s.touchedBy(tag)
	}
	if name, _, _ := wire.CString(tag); string(name) == "LISTEN" || string(name) == "DISCARD ALL" {
		s.listened(string(name))
	}
	if len(tag) > 3 && (string(tag[:3]) == "DEA" || string(tag[:3]) == "DIS") {
		s.deallocated(string(tag[:len(tag)-1]))
	}
}

// alters reports whether a command may change what a statement returns. Those that only add
// something do not, but for CREATE OR REPLACE VIEW.
func alters(tag []byte) bool {
	for _, command := range [...]string{"ALTER ", "DROP ", "CREATE VIEW"} {
		if len(tag) >= len(command) && string(tag[:len(command)]) == command {
			return true
		}
	}
	return false
}

// countError counts an ErrorResponse to a message of the client's.
func (s *Server) countError(body []byte) {
	s.owner.Refused(wire.ErrorField(body, 'C'))
	s.Totals.Errors++
	s.Stats.Errors++
	s.errors++
}

// failedAnswer follows an ErrorResponse.
func (s *Server) failedAnswer(first byte, body []byte) {
	s.countError(body)
	s.failed = true
	s.copyBoth = false
	if s.copyIn {
		s.copyIn, s.deallocating = false, nil // the COPY has read what was sent since
		if _, syncs, _ := s.ops.copyEnd(); syncs > 0 {
			s.doubt(first)
			return
		}
		s.ops.dropCopyEnd()
	}
	switch first {
	case wire.Query, wire.FunctionCall, wire.Sync, opQuery:
		// Its ReadyForQuery follows.
	case opPrepare:
		s.undo(first, *s.records.first())
		s.records.first().st = nil
	case 0:
		// Nobody asked: a farewell, and the end of the stream comes next.
	default:
		s.skipping = !s.skip()
		s.answered = true // also what follows, in that it is ignored
	}
}

// doubt follows the failure of a COPY behind whose start Syncs were sent.
func (s *Server) doubt(first byte) {
	syncs, more, rest := s.ops.doubt()
	s.doubtful = syncs
	if first == wire.Query {
		return // its ReadyForQuery follows, whatever was read
	}
	s.ops.pop()
	if more > 0 {
		return // they are answered, whatever was skipped before them
	}
	s.lost = rest // it is skipped or not
	s.skipping = true
}

// settle is called when the answer to something behind the doubtful Syncs shows that
// none of them will be answered any more.
func (s *Server) settle() {
	for range s.doubtful {
		s.popOp()
	}
	s.doubtful = 0
}

// ready follows a ReadyForQuery.
func (s *Server) ready(first byte, body []byte) error {
	if !isStatus(body) {
		return errNoStatus
	}
	s.readyForQuery(body[0])
	s.dropping = nil
	switch first {
	case doubtfulSync:
		s.doubtful--
		s.skipping = false
		s.popOp()
	case opQuery, opPrepare:
		s.injection = nil
		s.popRecord(first)
		s.popOp()
	case wire.Query, wire.FunctionCall, wire.Sync:
		s.popOp()
	default:
		s.lost = true
	}
	s.endDeallocating()
	return nil
}

// readyForQuery notes the end of a query, and of a transaction if it is one.
func (s *Server) readyForQuery(status byte) {
	s.status = status
	s.answered, s.failed = true, false
	if s.altered && status == wire.Idle {
		s.altered = false
		s.registry().Altered() // now for all
	}
	if s.phase != phaseHeld {
		return
	}
	s.Totals.Queries++
	s.Stats.Queries++
	if status == wire.Idle {
		s.Totals.Transactions++
		s.Stats.Transactions++
	}
}

// isStatus reports whether the body of a ReadyForQuery is one.
func isStatus(body []byte) bool {
	return len(body) == 1 && (body[0] == wire.Idle || body[0] == wire.InTransaction || body[0] == wire.Failed)
}

// errNoStatus says that a server does not keep to the protocol.
var errNoStatus = errors.New("ReadyForQuery without a status that there is")

// Failed reports whether the last thing that Postgres said was an ErrorResponse.
func (s *Server) Failed() bool { return s.failed }

// Complete reports whether what Postgres was sent ends with a Query or a Sync, so
// that it will answer without being sent more.
func (s *Server) Complete() bool { return !s.open && !s.copyIn && !s.copyBoth && !s.skipping }

// answerUncounted follows a server whose count is not known.
func (s *Server) answerUncounted(typ byte, body []byte) error {
	switch typ {
	case wire.ReadyForQuery:
		if !isStatus(body) {
			return errNoStatus
		}
		s.readyForQuery(body[0])
	case wire.CommandComplete:
		s.command(body)
	case wire.CopyInResponse:
		s.copyIn = true
	case wire.ErrorResponse:
		s.countError(body)
		s.copyIn, s.failed = false, true
	}
	return nil
}
