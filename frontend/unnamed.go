package frontend

import (
	"github.com/pgebb/pgebb/cache"
	"github.com/pgebb/pgebb/internal/wire"
)

// This file keeps a client's unnamed statement apart from those of others who use the same
// server. Nearly always it is parsed and bound in one batch; only one that its batch leaves
// unbound is kept.

// usesUnnamed deals with a Bind or Describe of the unnamed statement.
func (c *Client) usesUnnamed(o *output, i int, typ byte, size int) (int, *Error) {
	p, s := c.prepared, c.server
	kept := p != nil && p.unnamed != nil
	switch {
	case s.UnnamedInBatch():
		if typ == wire.Bind { // bound in its own batch
			o.unnamed = nil
			if p != nil && p.parsed != nil {
				c.dropUnnamed()
			}
			c.spent = true
		}
	case !kept && !s.Unnamed():
		return c.refuse(o, i, typ, size, errNoUnnamed(c.spent))
	case s.Behind():
		c.stalled = true
		return i, nil
	case kept:
		c.working()
		o.staged = s.UseUnnamed(o.stage(i, i), p.unnamed)
	}
	return -1, nil
}

// internUnnamed keeps the text of an unnamed Parse that is not bound yet.
func (c *Client) internUnnamed(text []byte) *cache.Statement {
	st, err := c.f.statements.Intern(text, c.plan())
	if err != nil {
		return nil // it just cannot be bound in another batch
	}
	return st
}

// keepUnnamed is called at a Sync: what is not bound yet may be in the next batch.
func (c *Client) keepUnnamed(o *output) {
	if o.unnamed != nil {
		c.statementsOf().unnamed = c.internUnnamed(o.unnamed)
		o.unnamed = nil
	} else if p := c.prepared; p != nil && p.parsed != nil {
		p.unnamed, p.parsed = p.parsed, nil
	}
}

// dropUnnamed forgets the unnamed statement.
func (c *Client) dropUnnamed() {
	c.spent = false
	p := c.prepared
	if p == nil {
		return
	}
	for _, st := range []**cache.Statement{&p.unnamed, &p.parsed} {
		if *st != nil {
			c.f.statements.Release(*st)
			*st = nil
		}
	}
	c.dropEmpty()
}
