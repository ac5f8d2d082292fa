package cache

import "iter"

// Element is what a [Table] holds: a pointer to a struct that has room for the link to
// the next element of its bucket.
type Element[T any] interface {
	*T
	Link() **T    // for the table only
	Hash() uint64 // constant as long as the element is in the table
}

// Table is a hash table of elements that have their place in memory elsewhere, and that
// grows and shrinks by a bucket at a time. The zero value is empty. It is not safe for
// concurrent use.
type Table[T any, P Element[T]] struct {
	buckets buckets[*T]
	n       int
}

// Len is the number of elements.
func (t *Table[T, P]) Len() int { return t.n }

// Bytes is what the table takes, without its elements.
func (t *Table[T, P]) Bytes() int64 { return t.buckets.bytes() }

// Growth is what an insertion now would add to Bytes.
func (t *Table[T, P]) Growth() int64 { return t.buckets.growth(t.n + 1) }

// First is the first element of those that may have a hash, nil if there is none; the
// others follow by their links.
func (t *Table[T, P]) First(hash uint64) *T {
	if t.n == 0 {
		return nil
	}
	return *t.bucket(hash)
}

func (t *Table[T, P]) bucket(hash uint64) **T { return t.buckets.at(t.buckets.index(hash)) }

// Insert adds an element that is not in the table.
func (t *Table[T, P]) Insert(e *T) {
	t.n++
	t.pushAll(t.buckets.grow(t.n))
	t.push(e)
}

func (t *Table[T, P]) push(e *T) {
	b := t.bucket(P(e).Hash())
	*P(e).Link() = *b
	*b = e
}

// pushAll inserts an element and those that follow.
func (t *Table[T, P]) pushAll(e *T) {
	for e != nil {
		next := *P(e).Link()
		t.push(e)
		e = next
	}
}

// Remove takes out an element that is in the table.
func (t *Table[T, P]) Remove(e *T) {
	at := t.bucket(P(e).Hash())
	for *at != e {
		at = P(*at).Link()
	}
	*at = *P(e).Link()
	*P(e).Link() = nil
	t.n--
	if t.n == 0 {
		*t = Table[T, P]{}
		return
	}
	for range mergesAtOnce {
		merged, ok := t.buckets.shrink(t.n)
		if !ok {
			return
		}
		t.pushAll(merged)
	}
}

// All are the elements, in no order. The table must not be changed meanwhile.
func (t *Table[T, P]) All() iter.Seq[*T] {
	return func(yield func(*T) bool) {
		for i := range t.buckets.n {
			for e := *t.buckets.at(i); e != nil; e = *P(e).Link() {
				if !yield(e) {
					return
				}
			}
		}
	}
}
