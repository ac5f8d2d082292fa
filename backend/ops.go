package backend

import (
	"slices"

	"github.com/pgebb/pgebb/internal/wire"
)

// ops is the queue of messages that a server was sent and has not answered, one
// byte each: the type of the message. It is what "every expected reply has
// arrived" is decided by, and it is exact: an error skips to the Sync as
// Postgres does. Messages that have no answer of their own (Flush, CopyData) are
// not queued.
//
// A pipeline of up to len(inline) messages costs nothing; a longer one takes
// memory for as long as it lasts.
type ops struct {
	q      []byte // q[head:] are waiting for their answers
	head   int
	ends   int // how many of them can begin or end a transaction, see endsBatch
	inline [24]byte
}

// describeStatement stands for a Describe of a statement, which has two answers
// where that of a portal has one.
const describeStatement = 'd'

// doubtfulSync stands for a Sync that a failed COPY may have read and ignored, so
// that it is not known whether it is answered. Doubtful Syncs stand together, behind
// those in the same run that are certain: of that many answers the last may be missing.
const doubtfulSync = 's'

func (o *ops) push(op byte) {
	if o.q == nil {
		o.q = o.inline[:0]
	}
	if o.head > len(o.q)/2 && len(o.q) == cap(o.q) {
		o.q = o.q[:copy(o.q, o.q[o.head:])]
		o.head = 0
	}
	o.q = append(o.q, op)
	if endsBatch(op) {
		o.ends++
	}
}

// endsBatch says which messages are answered with a ReadyForQuery.
func endsBatch(op byte) bool {
	switch op {
	case wire.Query, wire.FunctionCall, wire.Sync, doubtfulSync, opQuery, opPrepare, opOurSync, opOurQuery:
		return true
	}
	return false
}

func (o *ops) pop() {
	if endsBatch(o.q[o.head]) {
		o.ends--
	}
	o.head++
	if o.head == len(o.q) {
		o.clear()
	}
}

func (o *ops) clear() { o.q, o.head, o.ends = o.inline[:0], 0, 0 }

// waiting are the messages without an answer; valid until the next push or pop.
func (o *ops) waiting() []byte { return o.q[o.head:] }

func (o *ops) len() int { return len(o.q) - o.head }

// first is the message that the server is working on, 0 if none.
func (o *ops) first() byte {
	if o.head == len(o.q) {
		return 0
	}
	return o.q[o.head]
}

// queries reports whether a Query is waiting for its answer.
func (o *ops) queries() bool {
	return slices.ContainsFunc(o.waiting(), func(op byte) bool { return op == wire.Query || op == opQuery })
}

// copyEnd finds the end of a COPY that the client has sent behind the first
// message, and says what else it sent before that: Syncs, which a COPY reads
// and ignores, or anything that is an error there.
func (o *ops) copyEnd() (index, syncs int, illegal bool) {
	for i := o.head + 1; i < len(o.q); i++ {
		switch o.q[i] {
		case wire.CopyDone, wire.CopyFail:
			return i, syncs, illegal
		case wire.Sync:
			syncs++
		default:
			illegal = true
		}
	}
	return -1, syncs, illegal
}

// endBehind reports whether there is a message behind an index that Postgres answers with a
// ReadyForQuery.
func (o *ops) endBehind(index int) bool { return slices.ContainsFunc(o.q[index+1:], endsBatch) }

// dropCopyEnd drops what stands behind the first message up to and including
// the end of a COPY.
func (o *ops) dropCopyEnd() {
	if end, syncs, _ := o.copyEnd(); end >= 0 {
		first := o.first()
		o.head = end
		o.q[o.head] = first
		o.ends -= syncs
	}
}

// doubt makes the Syncs between the first message and the end of its COPY, which has
// failed, doubtful, and drops that end. more is how many certain Syncs follow directly
// behind it, and rest whether there is anything behind those.
func (o *ops) doubt() (doubtful, more int, rest bool) {
	end, doubtful, _ := o.copyEnd()
	next := len(o.q)
	if end >= 0 {
		next = end
	}
	for ; next < len(o.q); next++ {
		switch o.q[next] {
		case wire.CopyDone, wire.CopyFail: // read and ignored
			continue
		case wire.Sync:
			more++
			continue
		}
		break
	}
	q := o.q[:o.head+1]
	for range more {
		q = append(q, wire.Sync)
	}
	for range doubtful {
		q = append(q, doubtfulSync)
	}
	rest = next < len(o.q)
	o.q = append(q, o.q[next:]...)
	return doubtful, more, rest
}

// pushSync puts a Sync at the end, or before the doubtful ones that are there.
func (o *ops) pushSync(doubtful int) {
	o.push(wire.Sync)
	if last := len(o.q) - 1; doubtful > 0 && last > o.head && o.q[last-1] == doubtfulSync {
		o.q[last-doubtful], o.q[last] = wire.Sync, doubtfulSync
	}
}
