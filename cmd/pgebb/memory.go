package main

import (
	"context"
	"time"

	"github.com/pgebb/pgebb/admin"
	"github.com/pgebb/pgebb/backend"
	"github.com/pgebb/pgebb/internal/memory"
	"github.com/pgebb/pgebb/pool"
)

// verifyVariable names the environment variable that, with the value "all", has every sum of
// the ledger compared with a recount, ten times a second and at the end. It is for tests.
const verifyVariable = "PGEBB_VERIFY"

// mallocArenas is how many arenas C's malloc may have; by default it is eight for each
// processor.
const mallocArenas = 2

// registerHolders enters everything into the ledger that keeps memory.
func (p *pooler) registerHolders() {
	p.ledger.Register(memory.Holder{Memory: p.loops.Memory, Verify: p.loops.VerifyMemory})
	p.ledger.Register(memory.Holder{Memory: p.registry.Memory, Verify: p.registry.VerifyMemory})
	p.ledger.Register(memory.Holder{Memory: p.frontend.Memory, Verify: p.frontend.VerifyMemory})
	p.ledger.Register(memory.Holder{Memory: p.console.Memory})
	p.ledger.Register(memory.Holder{Memory: p.queryCacheMemory})
	p.ledger.Register(memory.Holder{Memory: p.queries.Memory})
}

// verify runs until ctx ends.
func (p *pooler) verify(ctx context.Context) {
	ticker := time.NewTicker(100 * time.Millisecond)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			p.mustVerify()
		}
	}
}

func (p *pooler) mustVerify() {
	if err := p.ledger.Verify(); err != nil {
		panic("bug: the ledger is wrong: " + err.Error())
	}
}

// MemoryAccount implements the console's source of SHOW MEMORY.
func (p *pooler) MemoryAccount() (memory.Account, error) { return p.accountant.Account() }

// ClientMemory implements the console's source of SHOW CLIENT MEMORY.
func (p *pooler) ClientMemory() []admin.ConnMemory {
	var rows []admin.ConnMemory
	for _, c := range p.frontend.ClientMemories() {
		rows = append(rows, admin.ConnMemory{
			ID: c.ID, Database: c.Database, User: c.User, Addr: c.Addr, Port: c.Port,
			Used: c.Used, Allocated: c.Buffers, Statements: c.Statements, Total: c.Total,
		})
	}
	return rows
}

// ServerMemory implements the console's source of SHOW SERVER MEMORY.
func (p *pooler) ServerMemory() []admin.ConnMemory {
	var rows []admin.ConnMemory
	p.registry.EachServer(func(pl *pool.Pool, s *backend.Server) {
		c, m, pending := pl.Settings(), s.Memory(), s.PendingRoom()
		rows = append(rows, admin.ConnMemory{
			ID: pl.ID, Database: s.Target.Database, User: s.Target.User, Addr: c.Host, Port: c.Port, PID: s.PID,
			Used: m.Used + int64(s.Pending()), Allocated: m.Buffers + m.Queue + pending, Statements: m.Statements, Total: m.Total() + pending,
		})
	})
	return rows
}
