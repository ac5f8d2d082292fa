package cache

import "github.com/pgebb/pgebb/internal/memory"

// idleQueue are the statements of a shard that nobody uses, the one first that has been
// for the longest time. One that is used again leaves a hole, which costs less than links
// in every statement. The zero value is empty.
type idleQueue struct {
	q    []*Statement // nil where one was taken out
	head int          // what is before it is nil
	n    int
}

// fewIdle is how many statements the queue always keeps the room for, once it had them.
const fewIdle = 16

func (q *idleQueue) bytes() int64 { return memory.SizeOfPointers(cap(q.q) * 8) }

// push appends a statement.
func (q *idleQueue) push(st *Statement) {
	if len(q.q) == cap(q.q) && q.n <= len(q.q)/2 {
		q.close(q.q[:0])
	}
	st.at = uint32(len(q.q))
	q.q = append(q.q, st)
	q.n++
}

// close moves the statements to the front of a slice, which may be the queue's own.
func (q *idleQueue) close(to []*Statement) {
	from := q.q
	for _, st := range from[q.head:] {
		if st != nil {
			st.at = uint32(len(to))
			to = append(to, st)
		}
	}
	if cap(to) == cap(from) {
		clear(from[len(to):])
	}
	q.q, q.head = to, 0
}

// remove takes out a statement that is in the queue.
func (q *idleQueue) remove(st *Statement) {
	q.q[st.at] = nil
	q.n--
	switch c := cap(q.q); {
	case c > fewIdle && q.n < c/4:
		q.close(make([]*Statement, 0, c/2))
	case q.n == 0:
		q.q, q.head = q.q[:0], 0
	}
}

// oldest is the first statement, nil if there is none.
func (q *idleQueue) oldest() *Statement {
	if q.n == 0 {
		return nil
	}
	for q.q[q.head] == nil {
		q.head++
	}
	return q.q[q.head]
}
