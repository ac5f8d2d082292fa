package backend

import (
	"unsafe"

	"github.com/pgebb/pgebb/internal/memory"
)

// Memory is what a server holds, in bytes as the allocator counts them.
type Memory struct {
	Object     int64 // itself, with what Postgres told at its login
	Used       int64 // bytes in buffers
	Buffers    int64 // what they take: input that is not whole, answers of ours and to ours, output that Postgres has not taken
	Queue      int64 // messages without an answer, and what they may have set
	Statements int64 // which prepared statements it has
}

// Total is all of it, but for the chunk of output that Postgres has not taken, which the
// loop accounts for.
func (m Memory) Total() int64 { return m.Object + m.Buffers + m.Queue + m.Statements }

// Add adds what another server holds.
func (m *Memory) Add(o Memory) {
	m.Object += o.Object
	m.Used += o.Used
	m.Buffers += o.Buffers
	m.Queue += o.Queue
	m.Statements += o.Statements
}

// ServerCost is what a server takes in bytes, without what Postgres told at its login.
var ServerCost = memory.SizeOf(unsafe.Sizeof(Server{}))

// KeptCost is what it takes for each prepared statement that it has, besides its share of
// the table.
const KeptCost = int64(unsafe.Sizeof(kept{}))

// touchedCost is about what the name of a parameter takes of its map, besides its text, in bytes.
const touchedCost = 40

// Memory must be called on the server's loop.
func (s *Server) Memory() Memory {
	m := Memory{
		Object:     ServerCost + memory.SizeOf(len(s.secret)) + s.Greeting.size,
		Used:       int64(len(s.held) + len(s.made) + len(s.injection)),
		Buffers:    memory.SizeOf(cap(s.held)) + memory.SizeOf(cap(s.made)) + memory.SizeOf(cap(s.injection)),
		Queue:      memory.SizeOf(cap(s.records.q) * int(unsafe.Sizeof(record{}))),
		Statements: s.statements.table.Bytes() + int64(s.statements.len())*KeptCost,
	}
	if e := s.exchange; e != nil && e.answer != nil {
		m.Used += int64(e.answer.bytes)
		m.Buffers += int64(e.answer.bytes + cap(e.answer.open))
	}
	m.Queue += int64(s.touched.bytes + len(s.touched.names)*touchedCost)
	if c := cap(s.ops.q); c > len(s.ops.inline) {
		m.Queue += memory.SizeOf(c)
	}
	return m
}

// cost is what a greeting takes, but for its set, which is shared.
func (g *Greeting) cost() int64 {
	n := memory.SizeOf(unsafe.Sizeof(*g)) + memory.SizeOf(cap(g.Params)*int(unsafe.Sizeof(Param{})))
	for _, p := range g.Params {
		n += memory.SizeOf(len(p.Name)) + memory.SizeOf(len(p.Value))
	}
	return n
}
