package backend

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"

	"github.com/pgebb/pgebb/cache"
	"github.com/pgebb/pgebb/internal/wire"
)

// This file has to do with statements that are prepared, executed and dropped by SQL, and
// with messages that are refused here in their turn.

const (
	opQuery    = 'q' // a client's Query that names a statement
	opPrepare  = 'y' // a client's Query that prepares one under another name
	opOurSync  = 'z' // a Sync of ours: its answer is not the client's
	opOurQuery = 'o' // a Query of ours that prepares a statement: its answers are not the client's
	opRefused  = 'e' // stands for a client's message that is refused here
	opDrop     = 'k' // a client's Parse of a DEALLOCATE
)

// The messages of ours that prepare a statement by SQL in the middle of a batch, where a Query
// would end the transaction of the batch: a PREPARE that is parsed as the statement carrier,
// bound to a portal of that name and executed. Their answers are not the client's.
const (
	opCarrierParse   = '1'
	opCarrierBind    = '2'
	opCarrierClose   = '3'
	opCarrierExecute = '4' // it has the record of the statement that it prepares

	carrier = statementPrefix + "sql"
)

// sqlPlan is what the plans of statements that are prepared by SQL begin with, so that they
// are never one with a statement that is prepared by a Parse.
const sqlPlan = "PREPARE\x00"

// SQLPlan is the plan, see [cache.Registry], of a statement that is prepared by SQL. Its body
// is what stands behind its name in the PREPARE.
func SQLPlan(plan string) string { return sqlPlan + plan }

func bySQL(st *cache.Statement) bool { return strings.HasPrefix(st.Plan(), sqlPlan) }

// Rename says where in the text of a Query a name was replaced.
type Rename struct {
	At    int // in characters
	Shift int // how many characters longer the text is for it
}

// PrepareSQL appends to b a client's PREPARE of a statement under a name, as the text query,
// in which alone says that there is nothing else. It is nothing if the server has the
// statement and it is known how Postgres would answer.
func (s *Server) PrepareSQL(b []byte, name string, st *cache.Statement, query string, alone bool, rename Rename) []byte {
	id := st.ID()
	if alone && s.has(id) && s.Complete() && s.ops.len() == 0 && !s.lost && s.status != wire.Failed {
		s.client.FromServer(wire.AppendReadyForQuery(wire.AppendRaw(nil, wire.CommandComplete, []byte("PREPARE\x00")), s.status))
		return b
	}
	b = s.makeRoom(b, id)
	s.keep(id)
	s.recordQuery(opPrepare, record{st: st, id: id, name: name, rename: rename})
	return wire.AppendQuery(b, query)
}

// QuerySQL appends to b a client's Query that names a statement, as the text query.
func (s *Server) QuerySQL(b []byte, name string, st *cache.Statement, query string, rename Rename) []byte {
	id := st.ID()
	if !s.has(id) {
		b = s.makeRoom(b, id)
		b = s.inject(b, st, id)
		if !bySQL(st) && s.Complete() {
			// Should Postgres refuse the Parse, it is not to ignore the Query.
			s.pushOurs(opOurSync)
			b = wire.AppendEmpty(b, wire.Sync)
		}
	}
	s.recordQuery(opQuery, record{st: st, id: id, name: name, rename: rename})
	return wire.AppendQuery(b, query)
}

// DropSQL appends to b a client's Parse of the DEALLOCATE of a statement, whose name it has no
// longer unless Postgres refuses that.
func (s *Server) DropSQL(b []byte, name string, st *cache.Statement) []byte {
	b = s.Use(b, st)
	s.open = true
	s.record(opDrop, record{st: st, id: st.ID(), name: name})
	return wire.AppendParse(b, "", `DEALLOCATE "`+StatementName(st.ID())+"\"\x00\x00\x00")
}

// recordQuery queues a Query with its record.
func (s *Server) recordQuery(op byte, r record) {
	s.Totals.LastSent = wire.Query
	s.open = false
	s.record(op, r)
	s.seal()
}

// pushOurs queues a message of ours that has no record.
func (s *Server) pushOurs(op byte) {
	s.Stats.sent(op)
	if !s.lost && !s.skipping {
		s.ops.push(op)
	}
}

// inject appends to b what prepares a statement that the server lacks.
func (s *Server) inject(b []byte, st *cache.Statement, id uint64) []byte {
	s.keep(id)
	switch {
	case bySQL(st) && s.Complete():
		s.record(opOurQuery, record{st: st, id: id})
		return wire.AppendQuery(b, prepareSQL(st, id))
	case bySQL(st):
		return s.carry(b, prepareSQL(st, id), record{st: st, id: id})
	}
	s.record(opInjected, record{st: st, id: id})
	return appendParse(b, StatementName(id), st.Body())
}

// prepareSQL is the PREPARE of a statement under its name on servers.
func prepareSQL(st *cache.Statement, id uint64) string {
	return `PREPARE "` + StatementName(id) + `"` + st.Body()
}

// carry appends to b what carries out a text within a batch: what prepares a statement, as r
// says. An error leaves the carrier behind, so it is closed before as well.
func (s *Server) carry(b []byte, sql string, r record) []byte {
	s.pushOurs(opCarrierClose)
	b = wire.AppendCloseStatement(b, carrier)
	s.pushOurs(opCarrierParse)
	b = wire.AppendParse(b, carrier, sql+"\x00\x00\x00") // no types of parameters
	s.pushOurs(opCarrierBind)
	b = wire.AppendRaw(b, wire.Bind, []byte(carrier+"\x00"+carrier+"\x00\x00\x00\x00\x00\x00\x00"))
	s.record(opCarrierExecute, r)
	b = wire.AppendRaw(b, wire.Execute, []byte(carrier+"\x00\x00\x00\x00\x00"))
	s.pushOurs(opCarrierClose)
	b = wire.AppendRaw(b, wire.Close, []byte("P"+carrier+"\x00"))
	s.pushOurs(opCarrierClose)
	return wire.AppendCloseStatement(b, carrier)
}

// carried follows an answer to a message that has to do with the carrier, if it is one.
func (s *Server) carried(first, typ byte) bool {
	switch {
	case first == opCarrierParse && typ == wire.ParseComplete,
		first == opCarrierBind && typ == wire.BindComplete,
		first == opCarrierClose && typ == wire.CloseComplete:
	case first == opCarrierExecute && typ == wire.CommandComplete:
		s.popRecord(first)
	default:
		return false
	}
	s.popOp()
	return true
}

// Refuse appends to b what makes Postgres refuse the message that the client has sent, with
// all that follows from that, and has the client told of e instead, which is an encoded
// ErrorResponse.
func (s *Server) Refuse(b []byte, typ byte, e []byte) []byte {
	const none = statementPrefix + "0" // no statement has it
	r := record{refusal: e}
	if typ == wire.Query {
		s.recordQuery(opQuery, r)
		return wire.AppendQuery(b, `EXECUTE "`+none+`"`)
	}
	s.open, s.refusing = true, true
	s.record(opRefused, r)
	return wire.AppendDescribeStatement(b, none)
}

// Refusing reports whether a message of the present batch is refused already, so that nothing
// behind it is carried out.
func (s *Server) Refusing() bool { return s.refusing }

// ourAnswer follows an answer to a Query or Sync of ours.
func (s *Server) ourAnswer(first, typ byte, body []byte) error {
	switch typ {
	case wire.ErrorResponse:
		if r := s.records.first(); first == opOurQuery && r.equalizes {
			r.equalizes = false // the client's own statement, behind it, fails as well
			return nil
		}
		s.injectionFailed(body)
		s.undo(opInjected, *s.records.first())
	case wire.ReadyForQuery:
		if !isStatus(body) {
			return errNoStatus
		}
		s.status = body[0]
		if first == opOurQuery {
			r := s.popRecord(first)
			s.equal = s.equal || r.equalizes && s.status == wire.Idle
		}
		s.popOp()
	}
	return nil
}

// injectionFailed keeps the error of a statement that could not be prepared again: it is what
// the client is told when the Query fails for the lack of it.
func (s *Server) injectionFailed(body []byte) {
	s.injection = wire.AppendRaw(nil, wire.ErrorResponse, body)
}

// oursFails reports whether the first message is a Parse or Close of ours that is sent ahead
// of a Query, so that its failure is not the client's.
func (s *Server) oursFails(first byte) bool {
	if first != opInjected && first != opEvicted {
		return false
	}
	for _, op := range s.ops.waiting() {
		switch op {
		case opInjected, opEvicted:
		default:
			return op == opOurSync
		}
	}
	return false
}

// renamedError is an ErrorResponse as the client is to see it, if that differs: with its own
// name of the statement instead of the server's, and positions in its own text.
func (s *Server) renamedError(first byte, body []byte) []byte {
	if !hasRecord(first) {
		return nil
	}
	r := *s.records.first()
	code := string(wire.ErrorField(body, 'C'))
	switch {
	case r.refusal != nil && code == "26000":
		return r.refusal
	case first == opQuery && code == "26000" && s.injection != nil:
		return s.injection
	case r.rename.Shift == 0 && !bytes.Contains(body, []byte(statementPrefix)):
		return nil
	}
	renamed := bytes.ReplaceAll(body, []byte(`"`+StatementName(r.id)+`"`), []byte(`"`+r.name+`"`))
	if at, err := strconv.Atoi(string(wire.ErrorField(body, 'P'))); err == nil && at > r.rename.At {
		renamed = bytes.Replace(renamed, positionField(at), positionField(at-r.rename.Shift), 1)
	}
	return wire.AppendRaw(nil, wire.ErrorResponse, renamed)
}

// positionField is the field of an ErrorResponse that says where in the text an error is,
// with the end of the field before it.
func positionField(at int) []byte { return fmt.Appendf(nil, "\x00P%d\x00", at) }
