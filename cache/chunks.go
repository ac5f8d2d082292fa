package cache

import (
	"unsafe"

	"github.com/pgebb/pgebb/internal/memory"
)

const (
	// chunkSize is how many places a long list adds at once. They are allocated together,
	// because the runtime keeps for good what it notes of each allocation of a few pages,
	// or page of small ones.
	chunkSize = 2048

	// fewestPlaces is how many a list begins with; up to chunkSize it doubles them.
	fewestPlaces = 2
)

// chunks are the places of a list that grows and shrinks at its end. Only what is in the
// first chunk ever moves, while that is the only one, so that no change takes long however
// long the list is. How much of it is in use is known to its owner. The zero value is empty.
type chunks[T any] struct {
	all  [][]T // of chunkSize, the only one may be shorter
	room int64 // what they take, in bytes
}

// capacity is the number of places.
func (c *chunks[T]) capacity() int {
	if len(c.all) == 0 {
		return 0
	}
	return len(c.all) * len(c.all[0])
}

func (c *chunks[T]) at(i int) *T { return &c.all[uint(i)/chunkSize][uint(i)%chunkSize] }

// fit makes room for an element more than the n that there are.
func (c *chunks[T]) fit(n int) {
	if n < c.capacity() {
		return
	}
	if k := len(c.all); k == 0 || len(c.all[0]) < chunkSize {
		c.resize(c.next())
		return
	} else if k == cap(c.all) {
		c.all = append(make([][]T, 0, 2*k), c.all...)
	}
	c.all = append(c.all, make([]T, chunkSize))
	c.recount()
}

// growth is what fit would add to room.
func (c *chunks[T]) growth(n int) int64 {
	switch k := len(c.all); {
	case n < c.capacity():
		return 0
	case k == 0 || len(c.all[0]) < chunkSize:
		return chunkBytes[T](c.next()) + memory.SizeOf(chunkHeader) - c.room
	case k == cap(c.all):
		return chunkBytes[T](chunkSize) + memory.SizeOf(2*k*chunkHeader) - memory.SizeOf(k*chunkHeader)
	}
	return chunkBytes[T](chunkSize)
}

// next is how many places the first chunk has when it grows.
func (c *chunks[T]) next() int { return max(fewestPlaces, 2*c.capacity()) }

const chunkHeader = int(unsafe.Sizeof([]byte{}))

// chunkBytes is what a chunk of n places takes in bytes.
func chunkBytes[T any](n int) int64 {
	var t T
	return memory.SizeOfPointers(n * int(unsafe.Sizeof(t)))
}

// resize makes the only chunk another size.
func (c *chunks[T]) resize(n int) {
	chunk := make([]T, n)
	if len(c.all) > 0 {
		copy(chunk, c.all[0])
	}
	c.all = [][]T{chunk}
	c.recount()
}

// trim gives up places that are too many for n elements, when there is one less. Some more
// than are used stay, so that an element that comes and goes does not have places come and go.
func (c *chunks[T]) trim(n int) {
	k := len(c.all)
	switch {
	case n == 0:
		*c = chunks[T]{}
	case k == 1 && c.capacity() > fewestPlaces && n <= c.capacity()/4:
		c.resize(c.capacity() / 2)
	case k > 1 && n <= (k-1)*chunkSize-chunkSize/2:
		c.all[k-1] = nil
		c.all = c.all[:k-1]
		if k-1 < cap(c.all)/4 {
			c.all = append(make([][]T, 0, cap(c.all)/2), c.all...)
		}
		c.recount()
	}
}

func (c *chunks[T]) recount() {
	c.room = memory.SizeOf(cap(c.all)*chunkHeader) + int64(len(c.all))*chunkBytes[T](len(c.all[0]))
}
