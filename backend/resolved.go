package backend

import (
	"strings"

	"github.com/pgebb/pgebb/cache"
)

// ResolvedLimit bounds in bytes what a pool remembers about the start-up
// parameters of its clients.
const ResolvedLimit = 256 << 10

// Resolved remembers what Postgres made of the start-up parameters that clients
// came with, so that only the first of those with the same ones needs a server for
// its login. It is safe for concurrent use.
type Resolved struct {
	lru *cache.LRU[string, resolution]
}

type resolution struct {
	set     Set
	refused []Refusal
}

// NewResolved makes an empty one.
func NewResolved() *Resolved {
	return &Resolved{cache.NewLRU(ResolvedLimit, func(k string, v resolution) int64 {
		cost := int64(2*len(k)+v.set.Len()) + cache.EntryOverhead
		for _, r := range v.refused {
			cost += int64(len(r.Body))
		}
		return cost
	})}
}

func resolvedKey(params []Param) string {
	var b strings.Builder
	for _, p := range params {
		b.WriteString(p.Name + "\x00" + p.Value + "\x00")
	}
	return b.String()
}

// Get returns the set that the parameters came to and what was refused.
func (r *Resolved) Get(params []Param) (Set, []Refusal, bool) {
	v, ok := r.lru.Get(resolvedKey(params))
	return v.set, v.refused, ok
}

// Put remembers it.
func (r *Resolved) Put(params []Param, set Set, refused []Refusal) {
	r.lru.Put(resolvedKey(params), resolution{set, refused})
}

// Bytes is what is remembered, in bytes.
func (r *Resolved) Bytes() int64 { return r.lru.Bytes() }
