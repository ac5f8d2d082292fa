package cache

import (
	"math/bits"
	"unsafe"
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
	list chunks[*[segmentSize]B] // the first segments are all that there are
	n    int                     // in use; the segments have room for up to segmentSize-1 more
}

// segments is how many there are.
func (b *buckets[B]) segments() int { return (b.n + segmentSize - 1) / segmentSize }

// bytes is what the segments take, and the list of them.
func (b *buckets[B]) bytes() int64 {
	return b.list.room + int64(b.segments())*int64(unsafe.Sizeof([segmentSize]B{}))
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

func (b *buckets[B]) at(i int) *B { return &(*b.list.at(i / segmentSize))[i%segmentSize] }

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
	if b.n%segmentSize == 0 {
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

// addSegment is called when all buckets of the others are in use.
func (b *buckets[B]) addSegment() {
	n := b.segments()
	b.list.fit(n)
	*b.list.at(n) = new([segmentSize]B)
}

// growth is what an element more, of n with it, would add to bytes.
func (b *buckets[B]) growth(n int) int64 {
	if n <= b.n || b.n%segmentSize != 0 {
		return 0
	}
	return b.list.growth(b.segments()) + int64(unsafe.Sizeof([segmentSize]B{}))
}

// dropSegment is called when no bucket of the last one is in use any more.
func (b *buckets[B]) dropSegment() {
	n := b.segments()
	*b.list.at(n) = nil
	b.list.trim(n)
}
