// Package cache keeps things that may be forgotten: bounded in bytes, not in
// numbers of entries, because entries differ in size by a factor of a thousand.
//
// [LRU] forgets what was used least recently, and [Trees] what was not used for a while as
// well. [Registry] holds the prepared statements of
// all clients, each once, and [Names] what one client calls them. [Table] and slots are what
// things are looked up in: they are never rebuilt, so that nothing ever takes long, and
// shrink. It does no I/O and starts no goroutine.
//
// The caveat that bites: a cost that leaves out an entry's overhead makes the
// bound a lie; use [EntryOverhead] on top of the bytes of key and value.
package cache

import (
	"math"
	"sync"

	"github.com/hashicorp/golang-lru/v2/simplelru"
)

// EntryOverhead is what an entry costs in bytes besides its key and value: its
// element of the list and its share of the map.
const EntryOverhead = 160

// LRU is a map that forgets the least recently used entries when their cost is
// over the limit. It is safe for concurrent use.
type LRU[K comparable, V any] struct {
	limit int64            // bytes; constant
	cost  func(K, V) int64 // constant

	mu    sync.Mutex
	lru   *simplelru.LRU[K, V] // guarded by mu
	bytes int64                // guarded by mu
}

// NewLRU makes an LRU with a limit in bytes. cost is what an entry takes in bytes,
// overhead included; it must always be the same for the same entry.
func NewLRU[K comparable, V any](limit int64, cost func(K, V) int64) *LRU[K, V] {
	c := &LRU[K, V]{limit: limit, cost: cost}
	// The number of entries is not what bounds it, and MaxInt is a legal size.
	c.lru, _ = simplelru.NewLRU(math.MaxInt, func(k K, v V) { c.bytes -= cost(k, v) })
	return c
}

// Get returns what is kept for k, and makes it the most recently used.
func (c *LRU[K, V]) Get(k K) (V, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.lru.Get(k)
}

// Put keeps v for k, in place of what was kept for it. What costs more than the
// whole limit is not kept.
func (c *LRU[K, V]) Put(k K, v V) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lru.Remove(k)
	cost := c.cost(k, v)
	if cost > c.limit {
		return
	}
	c.lru.Add(k, v)
	c.bytes += cost
	for c.bytes > c.limit {
		c.lru.RemoveOldest()
	}
}

// Remove forgets what is kept for k.
func (c *LRU[K, V]) Remove(k K) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lru.Remove(k)
}

// Bytes is the cost of all entries.
func (c *LRU[K, V]) Bytes() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.bytes
}

// Len is the number of entries.
func (c *LRU[K, V]) Len() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.lru.Len()
}
