package frontend

import (
	"fmt"
	"unsafe"

	"github.com/pgebb/pgebb/internal/loop"
	"github.com/pgebb/pgebb/internal/memory"
)

// held is what the clients of one loop hold, in sums that follow every change. Bytes are
// those that the allocator takes.
type held struct {
	clients   int64
	prepared  int64 // of them, those with prepared statements
	input     int64 // bytes that cannot be dealt with yet
	inputs    int64 // clients that hold some
	parses    int64 // bytes of Parses that are collected
	collected int64 // clients that collect one
}

// ClientCost is what a client takes in bytes that does nothing.
var ClientCost = memory.SizeOf(unsafe.Sizeof(Client{}))

// preparedCost is what one takes besides that has prepared statements, without their names.
var preparedCost = memory.SizeOf(unsafe.Sizeof(statements{}))

// hold changes the input that cannot be dealt with yet; b is kept.
func (c *Client) hold(b []byte) {
	h := &c.f.held[c.Loop().ID()]
	more := memory.SizeOf(cap(b)) - memory.SizeOf(cap(c.held))
	h.input += more
	c.f.budget.Transit(more)
	h.inputs += one(b) - one(c.held)
	c.held = b
}

// collecting changes the Parse that is collected; b is kept.
func (c *Client) collecting(b []byte) {
	h := &c.f.held[c.Loop().ID()]
	more := memory.SizeOf(cap(b)) - memory.SizeOf(cap(c.collected))
	h.parses += more
	c.f.budget.Transit(more)
	h.collected += one(b) - one(c.collected)
	c.collected = b
}

func one(b []byte) int64 {
	if b == nil {
		return 0
	}
	return 1
}

// arrive counts a client that has come to the loop.
func (h *held) arrive(c *Client) { h.count(c, 1) }

// leave discounts one that goes, with what it holds then.
func (h *held) leave(c *Client) { h.count(c, -1) }

func (h *held) count(c *Client, sign int64) {
	h.clients += sign
	if c.prepared != nil {
		h.prepared += sign
	}
	h.input += sign * memory.SizeOf(cap(c.held))
	h.inputs += sign * one(c.held)
	h.parses += sign * memory.SizeOf(cap(c.collected))
	h.collected += sign * one(c.collected)
}

func (h *held) add(o held) {
	h.clients += o.clients
	h.prepared += o.prepared
	h.input += o.input
	h.inputs += o.inputs
	h.parses += o.parses
	h.collected += o.collected
}

// Memory is what is held for clients. It must not be called on a loop.
func (f *Frontend) Memory() []memory.Holding {
	var sum held
	var scratch, scratches int64
	for _, l := range f.loops.Loops() {
		l.Call(func() {
			sum.add(f.held[l.ID()])
			if b := f.scratch[l.ID()]; b != nil {
				scratch += memory.SizeOf(cap(b))
				scratches++
			}
		})
	}
	names, n := f.statements.Named()
	return []memory.Holding{
		{Name: "clients", Doc: "connected clients", Bytes: sum.clients * ClientCost, Items: sum.clients},
		{Name: "client_input", Doc: "what clients have sent and cannot be dealt with yet", Bytes: sum.input, Items: sum.inputs},
		{Name: "client_parses", Doc: "large Parse messages that are read as a whole", Bytes: sum.parses, Items: sum.collected},
		{Name: "client_statements", Doc: "names of clients for their prepared statements", Bytes: names + sum.prepared*preparedCost, Items: n},
		{Name: "cancel_keys", Doc: "table to find clients by their cancel keys", Bytes: f.keys.bytes(), Items: int64(f.keys.count())},
		{Name: "scratch", Doc: "buffers to put messages together in, one for each loop", Bytes: scratch, Items: scratches, Limit: int64(len(f.scratch)) * maxScratch},
	}
}

// VerifyMemory looks at every client and compares with the sums. It must not be called on
// a loop.
func (f *Frontend) VerifyMemory() error {
	var wrong error
	for _, l := range f.loops.Loops() {
		l.Call(func() {
			var sum held
			l.Each(func(h loop.Handler) {
				c, ok := h.(*Client)
				if !ok {
					return
				}
				sum.arrive(c)
				if p := c.prepared; p != nil && p.names != nil && p.names.Bytes() != p.names.Recount() {
					wrong = fmt.Errorf("the names of client %d take %d bytes and are counted as %d", c.id, p.names.Recount(), p.names.Bytes())
				}
			})
			if is := f.held[l.ID()]; is != sum {
				wrong = fmt.Errorf("the clients of loop %d hold %+v and are counted as %+v", l.ID(), sum, is)
			}
		})
	}
	return wrong
}

// ClientMemory is what is held for a client, in bytes as the allocator counts them.
type ClientMemory struct {
	ID             uint64
	User, Database string
	Addr           string
	Port           int
	Used           int64 // bytes in buffers
	Buffers        int64 // what they take: input that cannot be dealt with yet, and output that it has not taken
	Statements     int64 // its names for prepared statements; the statements are shared
	Total          int64
}

// ClientMemories returns what is held for each client. It must not be called on a loop.
func (f *Frontend) ClientMemories() []ClientMemory {
	var all []ClientMemory
	f.eachClient(func(c *Client) {
		set := c.pool.Settings()
		m := ClientMemory{
			ID: c.id, User: set.User, Database: set.Database, Used: int64(len(c.held) + len(c.collected) + c.Pending()),
			Buffers: memory.SizeOf(cap(c.held)) + memory.SizeOf(cap(c.collected)) + c.PendingRoom(),
		}
		if p := c.prepared; p != nil {
			m.Statements = preparedCost
			if p.names != nil {
				m.Statements += p.names.Bytes()
			}
		}
		m.Total = ClientCost + m.Buffers + m.Statements
		m.Addr, m.Port = c.RemoteAddr()
		all = append(all, m)
	})
	return all
}
