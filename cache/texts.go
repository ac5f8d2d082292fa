package cache

import (
	"fmt"
	"unsafe"

	"github.com/pgebb/pgebb/internal/memory"
)

const (
	// largestBlock and smallestBlock are the sizes of blocks in bytes. A block costs the
	// runtime as much for good as one of the pages that texts would take one by one; and
	// it is moved at once, which must not take long.
	largestBlock  = 64 << 10
	smallestBlock = 256

	// blockPart is what part of all texts a block may be, so that few of them do not
	// take a large one.
	blockPart = 8

	// ownBlock is from how many bytes on a text has a block of its own.
	ownBlock = largestBlock / 8

	// wastePart is what part of the blocks may be wasted, besides leastWaste bytes: for
	// each byte that is dropped at most two are moved.
	wastePart  = 3
	leastWaste = 1 << 10

	// stepPart is how many bytes of a block are gone through for each byte that is
	// dropped, and stepTexts how many texts at most: whoever drops one must not be held up
	// with all of a block. A block of which a third is wasted is emptied before as
	// much is wasted elsewhere.
	stepPart  = 6
	stepTexts = 1 << 10
)

// record is a text in a block: its bytes are behind it. It is good for as long as anybody
// has a pointer to it, also when the text is elsewhere by then.
type record struct {
	size  uint32 // of the text, in bytes; constant
	hash  uint32 // tells whose text it is; constant
	block uint32 // its number; of those who own the texts only
}

const recordHeader = int(unsafe.Sizeof(record{}))

// bytes is the text. It must not be changed.
func (r *record) bytes() []byte {
	if r.size == 0 {
		return nil // there may be nothing behind it
	}
	return unsafe.Slice((*byte)(unsafe.Add(unsafe.Pointer(r), recordHeader)), r.size)
}

func (r *record) text() string { return unsafe.String(unsafe.SliceData(r.bytes()), r.size) }

// room is what the record takes of a block, in bytes.
func (r *record) room() int64 { return roomFor(int(r.size)) }

func roomFor(size int) int64 {
	n := int64(recordHeader+size+3) &^ 3 // records are aligned
	if n >= ownBlock {
		return memory.SizeOf(n)
	}
	return n
}

// block is a piece of memory with many texts.
type block struct {
	b    []byte // nil if there is no block of this number
	live int64  // bytes of it that texts take
}

// texts are byte sequences, one behind the other in blocks. What is dropped leaves a hole;
// blocks that are mostly holes are emptied by moving what is left. The garbage collector
// keeps a block for as long as somebody has a text in it. The zero value is empty. It is
// not safe for concurrent use, but texts that it has given out are.
type texts struct {
	blocks  []block
	current int   // block that is being filled, if filled > 0
	filled  int   // bytes of it
	held    int64 // bytes of all blocks
	live    int64 // of them, those that texts take
	source  int   // number of the block that is being emptied, if tidying
	emptied int   // bytes of it
	tidying bool
	moves   uint64 // how many texts have been moved
}

// bytes is what they take, holes included.
func (t *texts) bytes() int64 {
	return t.held + blocksBytes(cap(t.blocks))
}

func blocksBytes(n int) int64 { return memory.SizeOfPointers(n * int(unsafe.Sizeof(block{}))) }

// growth is what a text of so many bytes would add to bytes.
func (t *texts) growth(size int) int64 {
	n := roomFor(size)
	switch {
	case n >= ownBlock:
	case t.fits(n):
		return 0
	default:
		n = t.blockFor(n)
	}
	if t.vacant() == cap(t.blocks) {
		n += blocksBytes(t.moreBlocks()) - blocksBytes(cap(t.blocks))
	}
	return n
}

// fits reports whether there is so much room in the current block.
func (t *texts) fits(n int64) bool {
	return t.filled > 0 && int64(t.filled)+n <= int64(len(t.blocks[t.current].b))
}

// blockFor is how large a new block is to be if a text takes n bytes of it.
func (t *texts) blockFor(n int64) int64 { return max(memory.SizeOf(n), t.nextBlock()) }

// nextBlock is how large a block should be now.
func (t *texts) nextBlock() int64 {
	size := int64(smallestBlock)
	for size < largestBlock && size < t.live/blockPart {
		size *= 2
	}
	return size
}

// put keeps a copy of a text.
func (t *texts) put(text []byte, hash uint32) *record {
	r := t.place(len(text), hash)
	copy(r.bytes(), text)
	return r
}

// place makes room for a text of so many bytes, which is to be written at once.
func (t *texts) place(size int, hash uint32) *record {
	n := roomFor(size)
	if n >= ownBlock {
		return t.note(t.addBlock(n), 0, size, hash)
	}
	if !t.fits(n) {
		t.current, t.filled = t.addBlock(t.blockFor(n)), 0
	}
	at := t.filled
	t.filled += int(n)
	return t.note(t.current, at, size, hash)
}

// note writes a record without its text.
func (t *texts) note(number, at, size int, hash uint32) *record {
	b := &t.blocks[number]
	r := (*record)(unsafe.Pointer(&b.b[at]))
	*r = record{size: uint32(size), hash: hash, block: uint32(number)}
	b.live += r.room()
	t.live += r.room()
	return r
}

// addBlock makes a block, and returns its number.
func (t *texts) addBlock(size int64) int {
	number := t.vacant()
	if number == cap(t.blocks) {
		t.blocks = append(make([]block, 0, t.moreBlocks()), t.blocks...)
	}
	if number == len(t.blocks) {
		t.blocks = append(t.blocks, block{})
	}
	t.blocks[number] = block{b: make([]byte, size)}
	t.held += size
	return number
}

// vacant is the first number that no block has.
func (t *texts) vacant() int {
	for i := range t.blocks {
		if t.blocks[i].b == nil {
			return i
		}
	}
	return len(t.blocks)
}

// moreBlocks is how many blocks there is to be room for when there is none for more.
func (t *texts) moreBlocks() int { return cap(t.blocks) + cap(t.blocks)/2 + 1 }

// dropBlock forgets a block that holds nothing any more. Its memory cannot be used again
// before the collector finds that nobody reads it.
func (t *texts) dropBlock(number int) {
	t.held -= int64(len(t.blocks[number].b))
	t.blocks[number] = block{}
	if number == t.current {
		t.filled = 0
	}
	if number == t.source {
		t.tidying = false
	}
	n := len(t.blocks)
	for n > 0 && t.blocks[n-1].b == nil {
		n--
	}
	t.blocks = t.blocks[:n]
	if c := cap(t.blocks); n == 0 {
		t.blocks = nil
	} else if c > 16 && n < c/4 {
		t.blocks = append(make([]block, 0, 2*n), t.blocks...)
	}
}

// dropped is in place of the number of the block of a text that was dropped.
const dropped = ^uint32(0)

// drop forgets a text.
func (t *texts) drop(r *record) {
	number := int(r.block)
	r.block = dropped
	b := &t.blocks[number]
	b.live -= r.room()
	t.live -= r.room()
	if b.live == 0 {
		t.dropBlock(number)
	}
}

// unfilled is what of the current block is still to be filled. If the block is larger than
// one would be made now, that is never going to be.
func (t *texts) unfilled() int64 {
	if t.filled == 0 {
		return 0
	}
	if n := int64(len(t.blocks[t.current].b)); n <= t.nextBlock() {
		return n - int64(t.filled)
	}
	return 0
}

// wasteful is the block that wastes most, if too much is wasted.
func (t *texts) wasteful() (number int, ok bool) {
	unfilled := t.unfilled()
	if t.held-t.live-unfilled <= t.held/wastePart+leastWaste {
		return 0, false
	}
	var most int64
	for i, b := range t.blocks {
		wasted := int64(len(b.b)) - b.live
		if i == t.current {
			wasted -= unfilled
		}
		if wasted > most {
			number, most = i, wasted
		}
	}
	return number, true
}

// tidy goes on with emptying a block, or begins with it if too much is wasted, and tells
// where texts are then. room is what has been dropped.
func (t *texts) tidy(room int64, moved func(from, to *record)) {
	if !t.tidying {
		number, ok := t.wasteful()
		if !ok {
			return
		}
		t.source, t.emptied, t.tidying = number, 0, true
		if number == t.current {
			t.filled = 0
		}
	}
	old, left := t.blocks[t.source].b, stepPart*room
	for n := 0; n < stepTexts && left > 0 && t.tidying; n++ {
		r := (*record)(unsafe.Pointer(&old[t.emptied]))
		t.emptied += int(r.room())
		left -= r.room()
		if r.block != dropped {
			t.moves++
			moved(r, t.put(r.bytes(), r.hash))
			t.drop(r) // the last one ends it
		}
	}
}

// verify counts anew.
func (t *texts) verify() error {
	var held, live int64
	for i, b := range t.blocks {
		var left int64
		for at := int64(0); left < b.live && at < int64(len(b.b)); {
			r := (*record)(unsafe.Pointer(&b.b[at]))
			at += r.room()
			if r.block == uint32(i) {
				left += r.room()
			}
		}
		held += int64(len(b.b))
		live += left
	}
	if held != t.held || live != t.live {
		return fmt.Errorf("blocks of %d bytes with texts of %d are counted as %d with %d", held, live, t.held, t.live)
	}
	return nil
}
