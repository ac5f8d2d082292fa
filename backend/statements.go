package backend

import (
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/pgebb/pgebb/cache"
	"github.com/pgebb/pgebb/internal/wire"
)

// This file keeps which prepared statements a server has. Clients name statements as they
// like; on servers a statement has the name statementPrefix and its ID, so that it is the
// same for all clients who prepared the same, and never another's.

const statementPrefix = OwnPrefix

// OwnPrefix is what names of pgebb's own in Postgres begin with.
const OwnPrefix = "__pgebb_"

// Messages that have to do with names of statements, as they are queued in ops. Each of
// them has a record.
const (
	opParse    = 'p' // a client's Parse under another name
	opHad      = '+' // a client's Parse of what the server had: its answer is made here
	opForgot   = '-' // a client's Close: its answer is made here, the server keeps its copy
	opBind     = 'b' // a client's Bind of a statement with a name
	opInjected = 'i' // a Parse of ours: its answer is not the client's
	opUnnamed  = 'u' // the same of the unnamed statement
	opEvicted  = 'x' // a Close of ours: its answer is not the client's
	opRedefine = 'r' // a client's Parse of a name that it has already: Postgres refuses it
)

// record is what is known of such a message until it is answered.
type record struct {
	st   *cache.Statement
	id   uint64 // of its name on the server at that time
	name string // the client's

	rename Rename // of an opQuery or opPrepare
	// equalizes is for what Equalize has sent, which has no statement.
	equalizes bool
	refusal   []byte // the encoded error that the client is to see
}

// records are those of the messages in ops that have one, in their order.
type records struct {
	q    []record
	head int
}

// keptRecords is for how many records a server keeps the room while it has none.
const keptRecords = 4

func (r *records) push(x record) {
	if r.head > len(r.q)/2 && len(r.q) == cap(r.q) { // a batch that does not end is never answered in full
		n := copy(r.q, r.q[r.head:])
		clear(r.q[n:])
		r.q, r.head = r.q[:n], 0
	}
	r.q = append(r.q, x)
}

func (r *records) first() *record { return &r.q[r.head] }

func (r *records) pop() record {
	x := r.q[r.head]
	r.q[r.head] = record{}
	r.head++
	if r.head == len(r.q) {
		r.q, r.head = r.q[:0], 0
		if cap(r.q) > keptRecords {
			r.q = nil
		}
	}
	return x
}

// StatementPolicy says how many statements a server may keep, and for how long.
type StatementPolicy struct {
	Limit  int           // at most, between transactions
	TTL    time.Duration // 0 for ever
	Jitter time.Duration // spread of TTL, so that not all expire at once
}

func appendStatementName(b []byte, id uint64) []byte {
	return strconv.AppendUint(append(b, statementPrefix...), id, 10)
}

// StatementName is the name of a statement on servers.
func StatementName(id uint64) string { return string(appendStatementName(nil, id)) }

// IsStatementName reports whether a name can be that of a statement on servers.
func IsStatementName(name string) bool { return strings.HasPrefix(name, statementPrefix) }

// has reports whether the server has a statement that has not expired, and makes it the
// most recently used.
func (s *Server) has(id uint64) bool {
	e := s.statements.get(id)
	if e == nil {
		return false
	}
	if e.expires > 0 && s.Loop().Now() >= e.expires {
		return false
	}
	e.checkout = uint32(s.checkouts)
	if s.statements.newest != e {
		s.statements.unlink(e)
		s.statements.append(e)
	}
	return true
}

// Prepare appends to b what must be sent for a client's Parse of a statement under a
// name, which is nothing if the server has it and nobody has changed what it is about since.
func (s *Server) Prepare(b []byte, name string, st *cache.Statement) []byte {
	s.open = true
	id := st.ID()
	if s.has(id) && s.statements.get(id).schema == s.registry().Schema() && s.certain() {
		s.record(opHad, record{st: st, id: id, name: name})
		return b
	}
	b = s.makeRoom(b, id)
	s.keep(id)
	s.record(opParse, record{st: st, id: id, name: name})
	return appendParse(b, StatementName(id), st.Body())
}

// certain reports whether a Parse of what the server has would succeed: it would not in a
// transaction that has failed, and whether there is one is not known while anything is
// unanswered that can begin or end one.
func (s *Server) certain() bool {
	return s.status != wire.Failed && s.ops.ends == 0
}

// Use appends to b what must be sent before a message that names the statement.
func (s *Server) Use(b []byte, st *cache.Statement) []byte {
	id := st.ID()
	if s.has(id) {
		return b
	}
	b = s.makeRoom(b, id)
	return s.inject(b, st, id)
}

// Bound notes that a Bind of a statement was sent.
func (s *Server) Bound(name string, st *cache.Statement) {
	s.open = true
	s.record(opBind, record{st: st, id: st.ID(), name: name})
}

// Forget answers a client's Close of its statement in its turn, and appends to b what must be
// sent for it: nothing as long as there is room, since the server keeps its copy for the next
// one who prepares the same.
func (s *Server) Forget(b []byte, name string, st *cache.Statement) []byte {
	s.open = true
	id := st.ID()
	s.record(opForgot, record{st: st, id: id, name: name})
	if s.statements.len() > s.policy.Limit && s.statements.get(id) != nil {
		return s.evict(b, id)
	}
	return b
}

// Deallocating notes that the Query that was sent last, or is sent next, is a DEALLOCATE
// of a statement, or, with nil, another command that drops statements.
func (s *Server) Deallocating(name string, st *cache.Statement) {
	s.deallocating = &record{st: st, name: name}
	if st != nil {
		s.deallocating.id = st.ID()
	}
}

// Unsettled reports whether messages of an earlier batch that define or forget names have no
// answer yet, so that it is not known what a name of the client's means, or whether the server
// has the statement. Within a batch
// it is: if one fails, what follows it is ignored.
//
// During a COPY nothing of the kind is legal, and nothing is waited for.
func (s *Server) Unsettled() bool { return (s.sealed > 0 || s.deallocating != nil) && !s.copyIn }

// seal ends a batch.
func (s *Server) seal() { s.sealed, s.unnamedNow, s.refusing = s.naming, false, false }

// Skipping reports whether Postgres ignores everything up to the next Sync.
func (s *Server) Skipping() bool { return s.skipping }

// keep notes that the server is about to have a statement.
func (s *Server) keep(id uint64) {
	e := &kept{id: id, checkout: uint32(s.checkouts), schema: s.registry().Schema()}
	if ttl := s.policy.TTL; ttl > 0 {
		if j := min(s.policy.Jitter, ttl-1); j > 0 {
			ttl += rand.N(2*j+1) - j
		}
		e.expires = s.Loop().Now() + ttl
	}
	s.statements.add(e)
}

func appendParse(b []byte, name, body string) []byte {
	return wire.AppendParse(b, name, body)
}

// makeRoom appends to b the Closes that go before a Parse of the statement with an ID: of
// its own copy if that has expired, and of what was not used for the longest time if
// there are too many. What the present client has used is left alone until it has let the
// server go.
func (s *Server) makeRoom(b []byte, id uint64) []byte {
	if s.statements.get(id) != nil {
		b = s.evict(b, id)
	}
	for s.statements.len() >= s.policy.Limit {
		e := s.statements.oldest
		if e.checkout == uint32(s.checkouts) {
			break
		}
		b = s.evict(b, e.id)
	}
	return b
}

func (s *Server) evict(b []byte, id uint64) []byte {
	s.statements.remove(id)
	s.record(opEvicted, record{id: id})
	s.Stats.Evictions++
	return wire.AppendCloseStatement(b, StatementName(id))
}

// record queues a message with its record. An answer that is made here is given at once
// when nothing is before it.
func (s *Server) record(op byte, r record) {
	s.Stats.sent(op)
	s.lost = s.lost || s.doubtful > 0 && op == opForgot || // nothing would settle what is doubtful
		s.copyIn && !s.copyEnded // it is illegal there
	if s.lost || s.skipping {
		s.answerUnqueued(op, r)
		return
	}
	if names(op) {
		s.naming++
	}
	s.ops.push(op)
	s.records.push(r)
	s.makeAnswers()
	if len(s.made) > 0 {
		made := s.made
		s.made = nil
		s.client.FromServer(made)
	}
}

// answerUnqueued answers what is not queued, because the queue is not to be relied on.
func (s *Server) answerUnqueued(op byte, r record) {
	switch op {
	case opHad:
		s.client.FromServer(wire.AppendEmpty(nil, wire.ParseComplete))
	case opForgot:
		s.registry().Release(r.st)
		s.client.FromServer(wire.AppendEmpty(nil, wire.CloseComplete))
	case opDrop:
		s.registry().Release(r.st)
	}
}

// popRecord takes off the record of the first message in the queue.
func (s *Server) popRecord(op byte) record {
	r := s.records.pop()
	if names(op) {
		s.naming--
		s.sealed = max(s.sealed-1, 0)
	}
	return r
}

// hasRecord says which messages have one.
func hasRecord(op byte) bool {
	switch op {
	case opParse, opHad, opForgot, opBind, opInjected, opUnnamed, opEvicted, opRedefine,
		opQuery, opPrepare, opOurQuery, opRefused, opDrop, opCarrierExecute:
		return true
	}
	return false
}

// names says which of them define or forget a name, of the client's or on the server.
func names(op byte) bool {
	switch op {
	case opParse, opHad, opForgot, opPrepare, opDrop, opInjected, opEvicted, opOurQuery, opCarrierExecute:
		return true
	}
	return false
}

// makeAnswers makes the answers that are due at the head of the queue.
func (s *Server) makeAnswers() {
	for {
		switch op := s.ops.first(); op {
		case opHad:
			s.popRecord(op)
			s.made = wire.AppendEmpty(s.made, wire.ParseComplete)
		case opForgot:
			s.registry().Release(s.popRecord(op).st)
			s.made = wire.AppendEmpty(s.made, wire.CloseComplete)
		case wire.CopyDone, wire.CopyFail:
			if s.copyIn {
				return
			}
		default:
			return
		}
		s.ops.pop()
	}
}

// registry is where statements are interned.
func (s *Server) registry() *cache.Registry { return s.owner.Registry() }

// completed follows a ParseComplete, BindComplete or CloseComplete; forward says whether
// it is the client's.
func (s *Server) completed(typ, first byte) (forward bool) {
	switch {
	case typ == wire.ParseComplete && first == wire.Parse,
		typ == wire.BindComplete && first == wire.Bind,
		typ == wire.CloseComplete && first == wire.Close:
		s.popOp()
		return true
	case typ == wire.ParseComplete && first == opParse, typ == wire.BindComplete && first == opBind:
		s.popRecord(first)
		s.popOp()
		return true
	case typ == wire.ParseComplete && first == opDrop:
		r := s.popRecord(first)
		s.dropping = append(s.dropping, r.id)
		s.registry().Release(r.st)
		s.popOp()
		return true
	case typ == wire.ParseComplete && (first == opInjected || first == opUnnamed), typ == wire.CloseComplete && first == opEvicted:
		s.popRecord(first)
		s.popOp()
		return false
	}
	s.lost = true
	return true
}

// undo takes back what was assumed of a message that Postgres has refused or ignored.
func (s *Server) undo(op byte, r record) {
	switch op {
	case opParse, opPrepare:
		if r.st != nil { // otherwise it is prepared already
			s.statements.remove(r.id)
			s.undefine(r)
		}
	case opHad:
		s.undefine(r)
	case opForgot, opDrop:
		if s.client == nil || !s.client.Restore(r.name, r.st) {
			s.registry().Release(r.st)
		}
	case opInjected, opOurQuery, opCarrierExecute:
		if r.st != nil {
			s.statements.remove(r.id)
		}
	case opEvicted:
		s.statements.add(&kept{id: r.id})
	}
}

func (s *Server) undefine(r record) {
	if s.client != nil {
		s.client.Undefine(r.name, r.st)
	}
}

// skip drops what Postgres ignores after an error, everything up to the next Sync, or up
// to the end if there is none yet; it says which.
func (s *Server) skip() (toSync bool) {
	s.undoUntil(isSync)
	s.endDeallocating()
	return s.ops.len() > 0
}

// endDeallocating forgets a DEALLOCATE that has failed, or that Postgres has ignored behind an
// error: no Query is unanswered then.
func (s *Server) endDeallocating() {
	if s.deallocating != nil && !s.ops.queries() {
		s.deallocating = nil
	}
}

// undoAll takes back everything, because the server is gone.
func (s *Server) undoAll() {
	s.undoUntil(func(byte) bool { return false })
	s.deallocating = nil
}

// isSync reports the messages that end the skipping after an error.
func isSync(op byte) bool { return op == wire.Sync || op == opOurSync }

// undoUntil drops messages up to one of a kind, and takes back what was assumed of them,
// the last first.
func (s *Server) undoUntil(end func(op byte) bool) {
	type dropped struct {
		op byte
		r  record
	}
	var all []dropped
	for s.ops.len() > 0 && !end(s.ops.first()) {
		op := s.ops.first()
		s.ops.pop()
		if hasRecord(op) {
			all = append(all, dropped{op, s.popRecord(op)})
		} else if op == wire.Parse {
			s.unnamedIgnored()
		}
	}
	for _, d := range slices.Backward(all) {
		s.undo(d.op, d.r)
	}
}

// stale acts on an error that says that a statement does not fit its tables any more:
// nobody else is to run into that, on this server or another.
func (s *Server) stale(first byte, body []byte) {
	if first != opBind && first != opQuery || string(wire.ErrorField(body, 'C')) != "0A000" || string(wire.ErrorField(body, 'R')) != "RevalidateCachedQuery" {
		return
	}
	s.registry().Renew(s.records.first().st)
}

// deallocated follows the tag of a command that drops statements.
func (s *Server) deallocated(tag string) {
	r := s.deallocating
	s.deallocating = nil
	switch tag {
	case "DEALLOCATE":
		switch {
		case r != nil && r.st != nil:
			s.statements.remove(r.id)
			s.undefine(*r)
		case len(s.dropping) > 0:
			s.statements.remove(s.dropping[0])
			s.dropping = s.dropping[1:]
		}
	case "DEALLOCATE ALL", "DISCARD ALL":
		s.statements = keeps{}
		if s.client != nil {
			s.client.UndefineAll()
		}
	}
}

// excess are the Closes that bring the server to its limit, with a Sync behind them; nil
// if it is within it.
func (s *Server) excess() []byte {
	var b []byte
	for s.statements.len() > s.policy.Limit {
		id := s.statements.oldest.id
		s.statements.remove(id)
		s.Stats.Evictions++
		s.Stats.CloseMessages++
		b = wire.AppendCloseStatement(b, StatementName(id))
	}
	if b == nil {
		return nil
	}
	return wire.AppendEmpty(b, wire.Sync)
}

// Statements is how many prepared statements the server has.
func (s *Server) Statements() int { return s.statements.len() }

// Redefined notes that a Parse was sent under the name of a statement that there is; it
// fails.
func (s *Server) Redefined(name string, st *cache.Statement) {
	s.open = true
	s.record(opRedefine, record{st: st, id: st.ID(), name: name})
}
