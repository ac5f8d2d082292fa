package loop

import (
	"fmt"
	"unsafe"

	"github.com/pgebb/pgebb/internal/memory"
)

// Held is what a loop holds, in bytes as the allocator counts them, besides its
// connections.
type Held struct {
	Fixed         int64 // its read buffer, its table of connections, what it waits with
	Spare         int64 // chunks that are kept for the next socket that does not take everything
	SpareChunks   int64
	Pending       int64 // chunks with what sockets have not taken, or handlers not read
	PendingChunks int64
	TLS           int64 // what TLS takes for connections, with what there is of records in part
	TLSConns      int64
}

// TLSCost is what TLS takes for one connection in bytes: the state of a tls.Conn and its
// two ciphers. A test compares it with the heap.
const TLSCost = 3100

// maxSpare is the most that a loop's spare chunks take.
const maxSpare = keptChunks * (1<<10 + 4<<10 + 16<<10 + BufferSize + int64(len(chunkSizes))*chunkOverhead)

// chunkOverhead is what a chunk costs besides its bytes.
const chunkOverhead = int64(unsafe.Sizeof(chunk{}))

// Held must be called on the loop's goroutine.
func (l *Loop) Held() Held {
	h := Held{
		Fixed: memory.SizeOf(unsafe.Sizeof(*l)) + memory.SizeOf(unsafe.Sizeof(*l.poll)) + memory.SizeOf(cap(l.buf)) +
			memory.SizeOf(cap(l.records)) + memory.SizeOf(cap(l.conns)*8) + memory.SizeOf(cap(l.again)*8) + l.batch.held(),
		Pending: l.pending.Load(), PendingChunks: int64(l.pendingChunks),
	}
	h.Pending += h.PendingChunks * chunkOverhead
	h.TLSConns = int64(l.encrypted)
	h.TLS = h.TLSConns*TLSCost + l.parts.Load()
	for _, list := range l.chunks.spare {
		for _, c := range list {
			h.Spare += memory.SizeOf(cap(c.b)) + chunkOverhead
			h.SpareChunks++
		}
	}
	return h
}

// recount is what Pending and PendingChunks of Held should be.
func (l *Loop) recount() (pending, chunks int64) {
	for _, c := range l.conns {
		if c != nil && c.out != nil {
			pending += memory.SizeOf(cap(c.out.b)) + chunkOverhead
			chunks++
		}
	}
	for _, ch := range l.early {
		pending += memory.SizeOf(cap(ch.b)) + chunkOverhead
		chunks++
	}
	return pending, chunks
}

// PendingRoom is what the chunk takes that holds the bytes that the peer has not taken
// yet. It must be called on the loop's goroutine.
func (c *Conn) PendingRoom() int64 {
	c.settle()
	if c.out == nil {
		return 0
	}
	return memory.SizeOf(cap(c.out.b)) + chunkOverhead
}

// Memory is what the loops hold. It must not be called on a loop.
func (g *Group) Memory() []memory.Holding {
	var sum Held
	for _, l := range g.loops {
		l.Call(func() {
			h := l.Held()
			sum.Fixed += h.Fixed
			sum.Spare += h.Spare
			sum.SpareChunks += h.SpareChunks
			sum.Pending += h.Pending
			sum.PendingChunks += h.PendingChunks
			sum.TLS += h.TLS
			sum.TLSConns += h.TLSConns
		})
	}
	n := int64(len(g.loops))
	return []memory.Holding{
		{Name: "loops", Doc: "event loops with their read buffers and tables of connections", Bytes: sum.Fixed, Items: n},
		{Name: "pending", Doc: "what clients and servers have not taken yet", Bytes: sum.Pending, Items: sum.PendingChunks},
		{Name: "tls", Doc: "TLS connections, and records of which only a part is there", Bytes: sum.TLS, Items: sum.TLSConns},
		{Name: "spare_chunks", Doc: "empty chunks for what will not be taken", Bytes: sum.Spare, Items: sum.SpareChunks, Limit: n * maxSpare},
	}
}

// VerifyMemory looks at every connection and compares with the sums. It must not be called
// on a loop.
func (g *Group) VerifyMemory() error {
	var wrong error
	for _, l := range g.loops {
		l.Call(func() {
			h := l.Held()
			if bytes, conns := l.recountTLS(); bytes != h.TLS || conns != h.TLSConns {
				wrong = fmt.Errorf("%d TLS connections of %d bytes are on loop %d and are counted as %d of %d", conns, bytes, l.id, h.TLSConns, h.TLS)
			}
			if pending, chunks := l.recount(); pending != h.Pending || chunks != h.PendingChunks {
				wrong = fmt.Errorf("%d chunks of %d bytes are pending on loop %d and are counted as %d of %d", chunks, pending, l.id, h.PendingChunks, h.Pending)
			}
		})
	}
	return wrong
}

// recountTLS is what TLS and TLSConns of Held should be.
func (l *Loop) recountTLS() (bytes, conns int64) {
	for _, c := range l.conns {
		if c != nil && c.tls != nil {
			bytes += TLSCost + int64(c.tls.transport.held)
			conns++
		}
	}
	return bytes, conns
}

// SetBudget has pending bytes taken from a budget. It is to be called before there are
// connections.
func (g *Group) SetBudget(b *memory.Budget) {
	for _, l := range g.loops {
		l.Call(func() { l.budget = b })
	}
}

// addPending counts bytes of pending chunks.
func (l *Loop) addPending(n int64) {
	l.pending.Add(n)
	l.budget.Transit(n)
}
