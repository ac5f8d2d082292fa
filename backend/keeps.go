package backend

import (
	"time"

	"github.com/pgebb/pgebb/cache"
)

// kept is a statement that a server has.
type kept struct {
	id           uint64
	checkout     uint32        // of the latest use
	schema       uint32        // when it was prepared, see [cache.Registry.Schema]
	expires      time.Duration // in loop.Now; 0 for never
	older, newer *kept
	link         *kept // of its bucket
}

// Link implements [cache.Element].
func (e *kept) Link() **kept { return &e.link }

// Hash implements [cache.Element]: numbers that are given in turn need none.
func (e *kept) Hash() uint64 { return e.id }

// keeps are the statements of a server, the least recently used first.
type keeps struct {
	table          cache.Table[kept, *kept]
	oldest, newest *kept
}

func (k *keeps) len() int { return k.table.Len() }

func (k *keeps) get(id uint64) *kept {
	e := k.table.First(id)
	for e != nil && e.id != id {
		e = e.link
	}
	return e
}

func (k *keeps) unlink(e *kept) {
	if e.older != nil {
		e.older.newer = e.newer
	} else {
		k.oldest = e.newer
	}
	if e.newer != nil {
		e.newer.older = e.older
	} else {
		k.newest = e.older
	}
	e.older, e.newer = nil, nil
}

func (k *keeps) append(e *kept) {
	e.older = k.newest
	if k.newest != nil {
		k.newest.newer = e
	} else {
		k.oldest = e
	}
	k.newest = e
}

func (k *keeps) add(e *kept) {
	k.remove(e.id)
	k.table.Insert(e)
	k.append(e)
}

func (k *keeps) remove(id uint64) {
	if e := k.get(id); e != nil {
		k.table.Remove(e)
		k.unlink(e)
	}
}
