package cache

import (
	"iter"
	"unsafe"

	"github.com/pgebb/pgebb/internal/memory"
)

const (
	// slotsAtOnce is how many slots a large table adds at once. They are allocated
	// together, because the runtime keeps for good what it notes of each allocation of a
	// few pages, or page of small ones.
	slotsAtOnce = 2048

	// fewestSlots is how many a table begins with; up to slotsAtOnce it doubles them.
	fewestSlots = 2
)

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
	chunks  [][]T           // of slotsAtOnce, the only one may be shorter
	buckets buckets[uint32] // numbers of slots, from 1 on
	n       int             // elements; they are in the first slots
	room    int64           // what the chunks take, in bytes
}

func (t *slots[T, P]) len() int { return t.n }

// bytes is what the table takes, with its elements.
func (t *slots[T, P]) bytes() int64 { return t.room + t.buckets.bytes }

// growth is what an insertion now would add to bytes.
func (t *slots[T, P]) growth() int64 {
	more := t.buckets.growth(t.n + 1)
	switch k := len(t.chunks); {
	case t.n < t.capacity():
		return more
	case k == 0 || len(t.chunks[0]) < slotsAtOnce:
		return more + chunkBytes[T](t.firstSlots()) + memory.SizeOf(chunkHeader) - t.room
	case k == cap(t.chunks):
		more += memory.SizeOf(2*k*chunkHeader) - memory.SizeOf(k*chunkHeader)
	}
	return more + chunkBytes[T](slotsAtOnce)
}

// capacity is the number of slots.
func (t *slots[T, P]) capacity() int {
	if len(t.chunks) == 0 {
		return 0
	}
	return len(t.chunks) * len(t.chunks[0])
}

// firstSlots is how many slots the first chunk has when it grows.
func (t *slots[T, P]) firstSlots() int { return max(fewestSlots, 2*t.capacity()) }

const chunkHeader = int(unsafe.Sizeof([]byte{}))

// chunkBytes is what a chunk of n slots takes in bytes.
func chunkBytes[T any](n int) int64 {
	var t T
	return memory.SizeOfPointers(n * int(unsafe.Sizeof(t)))
}

// slot is the element with a number.
func (t *slots[T, P]) slot(number uint32) P {
	i := number - 1
	return &t.chunks[i/slotsAtOnce][i%slotsAtOnce]
}

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
	if t.n == t.capacity() {
		t.addSlots()
	}
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
	t.dropSlots()
}

// addSlots makes room for an element more at least.
func (t *slots[T, P]) addSlots() {
	if k := len(t.chunks); k == 0 || len(t.chunks[0]) < slotsAtOnce {
		t.resize(t.firstSlots())
		return
	} else if k == cap(t.chunks) {
		t.chunks = append(make([][]T, 0, 2*k), t.chunks...)
	}
	t.chunks = append(t.chunks, make([]T, slotsAtOnce))
	t.recount()
}

// resize makes the only chunk another size.
func (t *slots[T, P]) resize(n int) {
	chunk := make([]T, n)
	if len(t.chunks) > 0 {
		copy(chunk, t.chunks[0])
	}
	t.chunks = [][]T{chunk}
	t.recount()
}

// dropSlots gives up slots that are too many. Some more than are used stay, so that an
// element that comes and goes does not have slots come and go.
func (t *slots[T, P]) dropSlots() {
	k := len(t.chunks)
	switch {
	case k == 1 && t.capacity() > fewestSlots && t.n <= t.capacity()/4:
		t.resize(t.capacity() / 2)
	case k > 1 && t.n <= (k-1)*slotsAtOnce-slotsAtOnce/2:
		t.chunks[k-1] = nil
		t.chunks = t.chunks[:k-1]
		if k-1 < cap(t.chunks)/4 {
			t.chunks = append(make([][]T, 0, cap(t.chunks)/2), t.chunks...)
		}
		t.recount()
	}
}

func (t *slots[T, P]) recount() {
	t.room = memory.SizeOf(cap(t.chunks)*chunkHeader) + int64(len(t.chunks))*chunkBytes[T](len(t.chunks[0]))
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
