package cache

// idleQueue are the statements of a shard that nobody uses, from the one that has been for
// the longest time on. They are next to each other in memory and linked by their places:
// one that is used again gives its place to the last one, so that there are no holes and
// nothing is ever moved together. The zero value is empty.
type idleQueue struct {
	places      chunks[idlePlace] // of numbers from 1 on
	n           int
	first, last uint32 // the oldest and the youngest, 0 if there are none
}

// idlePlace is that of a statement in the queue; the statement knows its number.
type idlePlace struct {
	st           *Statement
	older, newer uint32
}

// fewIdle is how many statements the queue always keeps the room for, once it had them.
const fewIdle = 16

func (q *idleQueue) bytes() int64 { return q.places.room }

func (q *idleQueue) place(number uint32) *idlePlace { return q.places.at(int(number - 1)) }

// push appends a statement.
func (q *idleQueue) push(st *Statement) {
	q.places.fit(q.n)
	q.n++
	st.at = uint32(q.n)
	*q.place(st.at) = idlePlace{st: st, older: q.last}
	*q.newerOf(q.last) = st.at
	q.last = st.at
}

// newerOf is where it is noted what follows a place; 0 stands for what is before all.
func (q *idleQueue) newerOf(number uint32) *uint32 {
	if number == 0 {
		return &q.first
	}
	return &q.place(number).newer
}

// olderOf is where it is noted what is before a place; 0 stands for what is behind all.
func (q *idleQueue) olderOf(number uint32) *uint32 {
	if number == 0 {
		return &q.last
	}
	return &q.place(number).older
}

// remove takes out a statement that is in the queue.
func (q *idleQueue) remove(st *Statement) {
	p := q.place(st.at)
	*q.newerOf(p.older) = p.newer
	*q.olderOf(p.newer) = p.older
	if end := q.place(uint32(q.n)); end != p {
		*p = *end
		p.st.at = st.at
		*q.newerOf(p.older) = st.at
		*q.olderOf(p.newer) = st.at
	}
	*q.place(uint32(q.n)) = idlePlace{}
	q.n--
	q.places.trim(max(q.n, fewIdle/2))
}

// replace puts another statement in the place of one.
func (q *idleQueue) replace(st, by *Statement) {
	by.at = st.at
	q.place(st.at).st = by
}

// oldest is the first statement, nil if there is none.
func (q *idleQueue) oldest() *Statement {
	if q.n == 0 {
		return nil
	}
	return q.place(q.first).st
}
