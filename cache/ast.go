package cache

import (
	"math"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/hashicorp/golang-lru/v2/simplelru"

	"github.com/pgebb/pgebb/internal/memory"
)

// TreeLimits bound a cache of trees. Zero is no limit, each.
type TreeLimits struct {
	Entries int
	Bytes   int64
	Idle    time.Duration // how long an entry stays that nobody asks for
}

// Trees keeps what was found out about SQL texts, of a type V, and the tree that it was
// found out from. It forgets what was used least recently when it is over a limit, and,
// when swept, what was not used for a while. It is safe for concurrent use.
type Trees[V any] struct {
	now atomic.Int64 // ns, of the last sweep; reading a clock costs more than a look-up

	mu     sync.Mutex
	limits TreeLimits                       // guarded by mu
	lru    *simplelru.LRU[string, *tree[V]] // guarded by mu
	peak   int                              // most entries since lru was made; guarded by mu
	bytes  int64                            // guarded by mu
	hits   uint64                           // guarded by mu
	misses uint64                           // guarded by mu
}

// tree is an entry.
type tree[V any] struct {
	value V
	bytes []byte
	more  int64 // what value refers to, in bytes
	used  int64 // ns, when the cache was swept before it was last used
	hits  uint64
}

// NewTrees makes a cache.
func NewTrees[V any](limits TreeLimits) *Trees[V] {
	c := &Trees[V]{limits: limits}
	c.renew()
	return c
}

// renew makes a new, empty list and map. A map never shrinks.
func (c *Trees[V]) renew() {
	// The limits are enforced here, and MaxInt is a legal size.
	c.lru, _ = simplelru.NewLRU(math.MaxInt, func(k string, t *tree[V]) { c.bytes -= t.cost(k) })
	c.peak = 0
}

// listEntry is what simplelru allocates for an entry, by its fields.
type listEntry struct {
	_, _, _ unsafe.Pointer
	_       string
	_       unsafe.Pointer
	_       time.Time
	_       uint8
}

// treeSlot is what an entry takes of a map on average, in bytes: a text and a pointer, and
// their control byte, at the load that maps have on average.
const treeSlot = 38

// cost is what an entry takes in bytes, all included.
func (t *tree[V]) cost(key string) int64 {
	return memory.SizeOf(len(key)) + memory.SizeOf(cap(t.bytes)) + t.more +
		memory.SizeOf(int(unsafe.Sizeof(*t))) + memory.SizeOf(int(unsafe.Sizeof(listEntry{}))) + treeSlot
}

// Swept is when the cache was swept last, as it was told.
func (c *Trees[V]) Swept() int64 { return c.now.Load() }

// Get returns what is kept for a text. key is not kept. more is how often it has been used
// besides, without being asked for here. It allocates nothing.
func (c *Trees[V]) Get(key []byte, more uint64) (v V, ok bool) {
	c.mu.Lock()
	t, ok := c.lru.Get(unsafe.String(unsafe.SliceData(key), len(key)))
	if ok {
		c.hits += 1 + more
		t.hits += 1 + more
		t.used = c.now.Load()
		v = t.value
	} else {
		c.misses++
	}
	c.mu.Unlock()
	return v, ok
}

// Put keeps a value for a text, and the tree it comes from; both are the cache's from then
// on, because copies would leave every second slot of the heap empty. more is what the
// value refers to, in bytes. What costs more than the whole limit is not kept.
func (c *Trees[V]) Put(k string, v V, more int64, bytes []byte) {
	t := &tree[V]{value: v, bytes: bytes, more: more, used: c.now.Load()}
	cost := t.cost(k)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lru.Remove(k)
	if c.limits.Bytes > 0 && cost > c.limits.Bytes {
		return
	}
	c.lru.Add(k, t)
	c.bytes += cost
	c.peak = max(c.peak, c.lru.Len())
	c.enforce()
}

// enforce drops what is over a limit.
func (c *Trees[V]) enforce() {
	for c.lru.Len() > 0 && (c.limits.Bytes > 0 && c.bytes > c.limits.Bytes || c.limits.Entries > 0 && c.lru.Len() > c.limits.Entries) {
		c.lru.RemoveOldest()
	}
}

// SetLimits changes the limits, at once.
func (c *Trees[V]) SetLimits(limits TreeLimits) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.limits = limits
	c.enforce()
	c.shrink()
}

// Sweep drops what was not used for the idle time, and tells the cache the time. It is to
// be called about once a second; now may start anywhere.
func (c *Trees[V]) Sweep(now time.Duration) {
	c.now.Store(int64(now))
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.limits.Idle <= 0 {
		return
	}
	for {
		_, t, ok := c.lru.GetOldest()
		if !ok || int64(now)-t.used < int64(c.limits.Idle) {
			break
		}
		c.lru.RemoveOldest()
	}
	c.shrink()
}

// shrink gives back the memory of a map that is mostly empty.
func (c *Trees[V]) shrink() {
	if c.peak < 64 || c.lru.Len() > c.peak/4 {
		return
	}
	old, bytes := c.lru, c.bytes
	c.renew()
	for _, k := range old.Keys() { // the oldest first
		t, _ := old.Peek(k)
		c.lru.Add(k, t)
	}
	c.bytes, c.peak = bytes, c.lru.Len()
}

// Reset drops all entries, and forgets how often something was found.
func (c *Trees[V]) Reset() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.renew()
	c.bytes, c.hits, c.misses = 0, 0, 0
}

// Shed drops all entries.
func (c *Trees[V]) Shed() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.renew()
	c.bytes = 0
}

// TreeStats are the figures of a cache.
type TreeStats struct {
	Entries      int
	Bytes        int64
	Hits, Misses uint64
}

// Stats returns the figures.
func (c *Trees[V]) Stats() TreeStats {
	c.mu.Lock()
	defer c.mu.Unlock()
	return TreeStats{c.lru.Len(), c.bytes, c.hits, c.misses}
}

// TreeEntry is one entry, for the console.
type TreeEntry struct {
	Text  string // without its constants
	Hits  uint64
	Bytes int64
	Idle  time.Duration // since its last use, to the second
}

// Entries returns all entries, the one that was used last at the end.
func (c *Trees[V]) Entries() []TreeEntry {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.now.Load()
	all := make([]TreeEntry, 0, c.lru.Len())
	for _, k := range c.lru.Keys() {
		t, _ := c.lru.Peek(k)
		all = append(all, TreeEntry{k, t.hits, t.cost(k), time.Duration(now - t.used)})
	}
	return all
}
