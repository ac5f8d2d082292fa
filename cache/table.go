package cache

import (
	"iter"
	"math/bits"

	"github.com/pgebb/pgebb/internal/memory"
)

const (
	// segmentSize is how many buckets are allocated at once.
	segmentSize = 16

	segmentBytes = segmentSize * 8

	// mergesAtOnce is how many buckets a removal gives up, at most. More than one, so
	// that a table that empties keeps up.
	mergesAtOnce = 3
)

// Element is what a [Table] holds: a pointer to a struct that has room for the link to
// the next element of its bucket.
type Element[T any] interface {
	*T
	Link() **T    // for the table only
	Hash() uint64 // constant as long as the element is in the table
}

// Table is a hash table that grows and shrinks by a bucket at a time (linear hashing), so
// that no change ever takes long, however many elements there are, and it is never
// larger than what it holds justifies: maps of Go never shrink, and are rebuilt at once.
// The zero value is empty. It is not safe for concurrent use.
type Table[T any, P Element[T]] struct {
	segments []*[segmentSize]*T
	n        int
	buckets  int   // in use; the segments have room for up to segmentSize-1 more
	bytes    int64 // see Bytes
}

// Len is the number of elements.
func (t *Table[T, P]) Len() int { return t.n }

// Bytes is what the table takes, without its elements.
func (t *Table[T, P]) Bytes() int64 { return t.bytes }

// First is the first element of those that may have a hash, nil if there is none; the
// others follow by their links.
func (t *Table[T, P]) First(hash uint64) *T {
	if t.n == 0 {
		return nil
	}
	return *t.bucket(t.index(hash))
}

// index is the bucket of a hash: its lowest bits, as many as number all buckets, or one
// fewer if there is no bucket of that number yet.
func (t *Table[T, P]) index(hash uint64) int {
	mask := 1<<bits.Len(uint(t.buckets-1)) - 1
	i := int(hash & uint64(mask))
	if i >= t.buckets {
		i &= mask >> 1
	}
	return i
}

func (t *Table[T, P]) bucket(i int) **T { return &t.segments[i/segmentSize][i%segmentSize] }

// Insert adds an element that is not in the table.
func (t *Table[T, P]) Insert(e *T) {
	if t.buckets == 0 {
		t.addSegment()
		t.buckets = segmentSize
	}
	t.n++
	if t.n > t.buckets {
		t.split()
	}
	t.push(t.index(P(e).Hash()), e)
}

func (t *Table[T, P]) push(i int, e *T) {
	b := t.bucket(i)
	*P(e).Link() = *b
	*b = e
}

// Remove takes out an element that is in the table.
func (t *Table[T, P]) Remove(e *T) {
	at := t.bucket(t.index(P(e).Hash()))
	for *at != e {
		at = P(*at).Link()
	}
	*at = *P(e).Link()
	*P(e).Link() = nil
	t.n--
	if t.n == 0 {
		t.segments, t.buckets, t.bytes = nil, 0, 0
		return
	}
	for range mergesAtOnce {
		if t.buckets <= segmentSize || t.buckets <= 2*t.n {
			return
		}
		t.merge()
	}
}

// split adds a bucket and moves into it what belongs there.
func (t *Table[T, P]) split() {
	if t.buckets == len(t.segments)*segmentSize {
		t.addSegment()
	}
	old := t.buckets &^ (1 << (bits.Len(uint(t.buckets)) - 1))
	rest := *t.bucket(old)
	*t.bucket(old) = nil
	t.buckets++
	for rest != nil {
		e := rest
		rest = *P(e).Link()
		t.push(t.index(P(e).Hash()), e)
	}
}

// merge gives up the last bucket.
func (t *Table[T, P]) merge() {
	last := t.bucket(t.buckets - 1)
	rest := *last
	*last = nil
	t.buckets--
	for rest != nil {
		e := rest
		rest = *P(e).Link()
		t.push(t.index(P(e).Hash()), e)
	}
	if t.buckets%segmentSize == 0 {
		t.dropSegment()
	}
}

func (t *Table[T, P]) addSegment() {
	if len(t.segments) == cap(t.segments) {
		t.segments = append(make([]*[segmentSize]*T, 0, t.moreSegments()), t.segments...)
	}
	t.segments = append(t.segments, new([segmentSize]*T))
	t.recount()
}

// moreSegments is how many segments there is to be room for when there is none for more.
func (t *Table[T, P]) moreSegments() int { return cap(t.segments) + cap(t.segments)/2 + 1 }

// Growth is what an insertion now would add to Bytes.
func (t *Table[T, P]) Growth() int64 {
	switch {
	case t.n < t.buckets || t.buckets < len(t.segments)*segmentSize:
		return 0
	case len(t.segments) < cap(t.segments):
		return segmentBytes
	}
	return segmentBytes + memory.SizeOf(t.moreSegments()*8) - memory.SizeOf(cap(t.segments)*8)
}

func (t *Table[T, P]) dropSegment() {
	n := len(t.segments) - 1
	t.segments[n] = nil
	t.segments = t.segments[:n]
	if c := cap(t.segments); c > 64 && n < c/4 {
		t.segments = append(make([]*[segmentSize]*T, 0, 2*n), t.segments...)
	}
	t.recount()
}

func (t *Table[T, P]) recount() {
	t.bytes = memory.SizeOf(cap(t.segments)*8) + int64(len(t.segments))*segmentBytes
}

// All are the elements, in no order. The table must not be changed meanwhile.
func (t *Table[T, P]) All() iter.Seq[*T] {
	return func(yield func(*T) bool) {
		for _, segment := range t.segments {
			for _, e := range segment {
				for ; e != nil; e = *P(e).Link() {
					if !yield(e) {
						return
					}
				}
			}
		}
	}
}
