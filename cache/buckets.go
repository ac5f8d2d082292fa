package cache

import (
	"math/bits"
	"unsafe"

	"github.com/pgebb/pgebb/internal/memory"
)

const (
	// segmentSize is how many buckets are allocated at once.
	segmentSize = 16

	// mergesAtOnce is how many buckets a removal gives up, at most. More than one, so
	// that a table that empties keeps up.
	mergesAtOnce = 3
)

// buckets are those of a hash table that grows and shrinks by a bucket at a time (linear
// hashing), so that no change ever takes long, however many elements there are, and it is
// never larger than what it holds justifies: maps of Go never shrink, and are rebuilt at
// once. B is what finds the first element of a bucket; its zero value is none.
type buckets[B any] struct {
	segments []*[segmentSize]B
	n        int   // in use; the segments have room for up to segmentSize-1 more
	bytes    int64 // what the segments take, and the table of them
}

// index is the bucket of a hash: its lowest bits, as many as number all buckets, or one
// fewer if there is no bucket of that number yet.
func (b *buckets[B]) index(hash uint64) int {
	mask := 1<<bits.Len(uint(b.n-1)) - 1
	i := int(hash & uint64(mask))
	if i >= b.n {
		i &= mask >> 1
	}
	return i
}

func (b *buckets[B]) at(i int) *B { return &b.segments[i/segmentSize][i%segmentSize] }

// grow has as many buckets as n elements need, if it is one more. What it returns was in a
// bucket that is split, and is in none.
func (b *buckets[B]) grow(n int) (split B) {
	if b.n == 0 {
		b.addSegment()
		b.n = segmentSize
	}
	if n <= b.n {
		return split
	}
	if b.n == len(b.segments)*segmentSize {
		b.addSegment()
	}
	return b.take(b.n&^(1<<(bits.Len(uint(b.n))-1)), 1)
}

// shrink gives up the last bucket if n elements do not need it. What it returns was there,
// and is in none.
func (b *buckets[B]) shrink(n int) (merged B, ok bool) {
	if b.n <= segmentSize || b.n <= 2*n {
		return merged, false
	}
	merged = b.take(b.n-1, -1)
	if b.n%segmentSize == 0 {
		b.dropSegment()
	}
	return merged, true
}

// take empties a bucket, and adds one or removes one.
func (b *buckets[B]) take(i, change int) (was B) {
	var none B
	was, *b.at(i) = *b.at(i), none
	b.n += change
	return was
}

func (b *buckets[B]) addSegment() {
	if len(b.segments) == cap(b.segments) {
		b.segments = append(make([]*[segmentSize]B, 0, b.more()), b.segments...)
	}
	b.segments = append(b.segments, new([segmentSize]B))
	b.recount()
}

// more is how many segments there is to be room for when there is none for more.
func (b *buckets[B]) more() int { return cap(b.segments) + cap(b.segments)/2 + 1 }

// growth is what an element more, of n with it, would add to bytes.
func (b *buckets[B]) growth(n int) int64 {
	switch {
	case n <= b.n || b.n < len(b.segments)*segmentSize:
		return 0
	case len(b.segments) < cap(b.segments):
		return b.segment()
	}
	return b.segment() + memory.SizeOf(b.more()*8) - memory.SizeOf(cap(b.segments)*8)
}

func (b *buckets[B]) dropSegment() {
	n := len(b.segments) - 1
	b.segments[n] = nil
	b.segments = b.segments[:n]
	if c := cap(b.segments); c > 64 && n < c/4 {
		b.segments = append(make([]*[segmentSize]B, 0, 2*n), b.segments...)
	}
	b.recount()
}

func (b *buckets[B]) segment() int64 { return memory.SizeOf(unsafe.Sizeof([segmentSize]B{})) }

func (b *buckets[B]) recount() {
	b.bytes = memory.SizeOf(cap(b.segments)*8) + int64(len(b.segments))*b.segment()
}
