package main

import (
	"context"
	"time"

	"github.com/pgebb/pgebb/internal/memory"
)

// verifyVariable names the environment variable that, with the value "all", has every sum of
// the ledger compared with a recount, ten times a second and at the end. It is for tests.
const verifyVariable = "PGEBB_VERIFY"

// registerHolders enters everything into the ledger that keeps memory.
func (p *pooler) registerHolders() {
	p.ledger.Register(memory.Holder{Memory: p.loops.Memory, Verify: p.loops.VerifyMemory})
	p.ledger.Register(memory.Holder{Memory: p.registry.Memory, Verify: p.registry.VerifyMemory})
	p.ledger.Register(memory.Holder{Memory: p.frontend.Memory, Verify: p.frontend.VerifyMemory})
	p.ledger.Register(memory.Holder{Memory: p.console.Memory})
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
