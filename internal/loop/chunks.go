package loop

import "github.com/pgebb/pgebb/internal/memory"

// chunkSizes are the capacities that pending bytes are kept in.
var chunkSizes = [...]int{1 << 10, 4 << 10, 16 << 10, BufferSize}

// keptChunks is how many drained chunks of each size a loop keeps for the next
// socket that does not take everything: with slow readers of large results
// that happens for every span, and each would be garbage. At most 340 KiB a
// loop in all; trim lets go of them when nobody needed any for a while.
const keptChunks = 4

// chunk holds what a socket did not take: b[off:].
type chunk struct {
	b   []byte
	off int
}

func (c *chunk) rest() []byte { return c.b[c.off:] }

// chunks are a loop's chunks; only its goroutine touches them.
type chunks struct {
	spare [len(chunkSizes)][]*chunk
	used  bool // since the last trim
}

// get returns an empty chunk with room for n bytes.
func (c *chunks) get(n int) *chunk {
	c.used = true
	for i, size := range chunkSizes {
		if n > size {
			continue
		}
		if k := len(c.spare[i]); k > 0 {
			ch := c.spare[i][k-1]
			c.spare[i] = c.spare[i][:k-1]
			return ch
		}
		return &chunk{b: make([]byte, 0, size)}
	}
	return &chunk{b: make([]byte, 0, memory.SizeOf(n))}
}

// put takes a chunk back.
func (c *chunks) put(ch *chunk) {
	for i, size := range chunkSizes {
		if cap(ch.b) == size && len(c.spare[i]) < keptChunks {
			ch.b, ch.off = ch.b[:0], 0
			c.spare[i] = append(c.spare[i], ch)
			return
		}
	}
}

// trim drops the spare chunks unless some were needed since the last call.
func (c *chunks) trim() {
	if !c.used {
		c.spare = [len(chunkSizes)][]*chunk{}
	}
	c.used = false
}
