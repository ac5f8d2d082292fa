package cache

import "iter"

// slotElement is what [slots] hold: a struct that has room for the link to the next element
// of its bucket.
type slotElement[T any] interface {
	*T
	Link() *uint32 // for the table only
	Hash() uint64  // constant as long as the element is in the table
}

// slots is a hash table like [Table] that keeps the elements themselves, one next to the
// other: whatever comes and goes, there is no room between them. So an element's place
// changes, and a pointer to it is good until the next change only. The zero value is empty.
// It is not safe for concurrent use.
type slots[T any, P slotElement[T]] struct {
	chunks  chunks[T]       // elements are in the first slots
	buckets buckets[uint32] // numbers of slots, from 1 on
	n       int             // elements
}

func (t *slots[T, P]) len() int { return t.n }

// bytes is what the table takes, with its elements.
func (t *slots[T, P]) bytes() int64 { return t.chunks.room + t.buckets.bytes() }

// growth is what an insertion now would add to bytes.
func (t *slots[T, P]) growth() int64 { return t.buckets.growth(t.n+1) + t.chunks.growth(t.n) }

// slot is the element with a number.
func (t *slots[T, P]) slot(number uint32) P { return t.chunks.at(int(number - 1)) }

// first is the first element of those that may have a hash, nil if there is none.
func (t *slots[T, P]) first(hash uint64) *T {
	if t.n == 0 {
		return nil
	}
	return t.numbered(*t.bucket(hash))
}

// next is the one behind e of those that first is the first of.
func (t *slots[T, P]) next(e *T) *T { return t.numbered(*P(e).Link()) }

func (t *slots[T, P]) numbered(number uint32) *T {
	if number == 0 {
		return nil
	}
	return t.slot(number)
}

func (t *slots[T, P]) bucket(hash uint64) *uint32 { return t.buckets.at(t.buckets.index(hash)) }

// insert adds an element.
func (t *slots[T, P]) insert(e T) {
	t.chunks.fit(t.n)
	t.n++
	t.pushAll(t.buckets.grow(t.n))
	*t.slot(uint32(t.n)) = e
	t.push(uint32(t.n))
}

func (t *slots[T, P]) push(number uint32) {
	e := t.slot(number)
	b := t.bucket(e.Hash())
	*e.Link() = *b
	*b = number
}

// pushAll inserts a slot and those that follow.
func (t *slots[T, P]) pushAll(number uint32) {
	for number != 0 {
		next := *t.slot(number).Link()
		t.push(number)
		number = next
	}
}

// remove takes out an element. The last one gets its slot.
func (t *slots[T, P]) remove(e *T) {
	at := t.bucket(P(e).Hash())
	for t.slot(*at) != P(e) {
		at = t.slot(*at).Link()
	}
	number, last := *at, uint32(t.n)
	*at = *P(e).Link()
	moved := t.slot(last)
	if number != last {
		at = t.bucket(moved.Hash())
		for *at != last {
			at = t.slot(*at).Link()
		}
		*at = number
		*e = *moved
	}
	var none T
	*moved = none
	t.n--
	if t.n == 0 {
		*t = slots[T, P]{}
		return
	}
	for range mergesAtOnce {
		merged, ok := t.buckets.shrink(t.n)
		if !ok {
			break
		}
		t.pushAll(merged)
	}
	t.chunks.trim(t.n)
}

// all are the elements, in no order. The table must not be changed meanwhile.
func (t *slots[T, P]) all() iter.Seq[*T] {
	return func(yield func(*T) bool) {
		for i := range t.n {
			if !yield(t.slot(uint32(i + 1))) {
				return
			}
		}
	}
}
