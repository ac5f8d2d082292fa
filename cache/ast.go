package cache

import (
	"hash/maphash"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

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
//
// Texts and trees are in blocks as those of prepared statements are: one by one they would
// lie on pages of the heap between what others drop, and keep a third more resident.
type Trees[V any] struct {
	now  atomic.Int64 // ns, of the last sweep; reading a clock costs more than a look-up
	seed maphash.Seed // constant

	mu             sync.Mutex
	limits         TreeLimits // guarded by mu, as is all of the following
	table          Table[tree[V], *tree[V]]
	texts          texts
	oldest, newest *tree[V] // by their last use
	more           int64    // what values refer to, in bytes
	hits           uint64
	misses         uint64
}

// tree is an entry.
type tree[V any] struct {
	value V
	text  *record // the key, then the tree
	key   int     // bytes of it
	more  int64   // what value refers to, in bytes
	used  int64   // ns, when the cache was swept before it was last used
	hits  uint64

	older, newer, link *tree[V]
}

// Link implements Element.
func (t *tree[V]) Link() **tree[V] { return &t.link }

// Hash implements Element.
func (t *tree[V]) Hash() uint64 { return uint64(t.text.hash) }

func (t *tree[V]) keyText() string { return t.text.text()[:t.key] }

// NewTrees makes a cache.
func NewTrees[V any](limits TreeLimits) *Trees[V] {
	return &Trees[V]{limits: limits, seed: maphash.MakeSeed()}
}

func (c *Trees[V]) hashOf(key []byte) uint32 {
	h := maphash.Bytes(c.seed, key)
	return uint32(h ^ h>>32)
}

// treeSize is what an entry takes besides its text and its share of the table, in bytes.
func (c *Trees[V]) treeSize() int64 {
	var t tree[V]
	return memory.SizeOf(unsafe.Sizeof(t))
}

// cost is what an entry takes in bytes, all included.
func (c *Trees[V]) cost(size int, more int64) int64 { return roomFor(size) + more + c.treeSize() + 8 }

// bytes is what all take.
func (c *Trees[V]) bytes() int64 {
	return c.texts.bytes() + c.table.Bytes() + c.more + int64(c.table.Len())*c.treeSize()
}

// Swept is when the cache was swept last, as it was told.
func (c *Trees[V]) Swept() int64 { return c.now.Load() }

func (c *Trees[V]) find(key []byte, hash uint32) *tree[V] {
	for t := c.table.First(uint64(hash)); t != nil; t = t.link {
		if t.text.hash == hash && t.keyText() == string(key) {
			return t
		}
	}
	return nil
}

// Get returns what is kept for a text. key is not kept. more is how often it has been used
// besides, without being asked for here. It allocates nothing.
func (c *Trees[V]) Get(key []byte, more uint64) (v V, ok bool) {
	hash := c.hashOf(key)
	c.mu.Lock()
	t := c.find(key, hash)
	if t == nil {
		c.misses++
		c.mu.Unlock()
		return v, false
	}
	c.hits += 1 + more
	t.hits += 1 + more
	t.used = c.now.Load()
	v = t.value
	if t != c.newest {
		c.unlink(t)
		c.append(t)
	}
	c.mu.Unlock()
	return v, true
}

// Used counts that what is kept for a text was used n times without being asked for here.
func (c *Trees[V]) Used(key []byte, n uint64) {
	hash := c.hashOf(key)
	c.mu.Lock()
	defer c.mu.Unlock()
	if t := c.find(key, hash); t != nil {
		c.hits += n
		t.hits += n
	}
}

// append makes an entry the one that was used last.
func (c *Trees[V]) append(t *tree[V]) {
	t.older, t.newer = c.newest, nil
	if c.newest != nil {
		c.newest.newer = t
	} else {
		c.oldest = t
	}
	c.newest = t
}

func (c *Trees[V]) unlink(t *tree[V]) {
	if t.older != nil {
		t.older.newer = t.newer
	} else {
		c.oldest = t.newer
	}
	if t.newer != nil {
		t.newer.older = t.older
	} else {
		c.newest = t.older
	}
}

// Put keeps a value for a text, and a copy of both and of the tree that it comes from. more is
// what the value refers to, in bytes. What costs more than the whole limit is not kept.
func (c *Trees[V]) Put(k string, v V, more int64, bytes []byte) {
	key := unsafe.Slice(unsafe.StringData(k), len(k))
	hash, size := c.hashOf(key), len(k)+len(bytes)
	c.mu.Lock()
	defer c.mu.Unlock()
	if t := c.find(key, hash); t != nil {
		c.drop(t)
	}
	if c.limits.Bytes > 0 && c.cost(size, more) > c.limits.Bytes {
		return
	}
	t := &tree[V]{value: v, text: c.texts.place(size, hash), key: len(k), more: more, used: c.now.Load()}
	copy(t.text.bytes(), k)
	copy(t.text.bytes()[len(k):], bytes)
	c.table.Insert(t)
	c.append(t)
	c.more += more
	c.enforce()
}

// drop forgets an entry.
func (c *Trees[V]) drop(t *tree[V]) {
	c.unlink(t)
	c.table.Remove(t)
	c.more -= t.more
	room := t.text.room()
	c.texts.drop(t.text)
	c.texts.tidy(room, c.moved)
}

// moved is called when a text has another place.
func (c *Trees[V]) moved(from, to *record) {
	t := c.table.First(uint64(from.hash))
	for t.text != from {
		t = t.link
	}
	t.text = to
}

// enforce drops what is over a limit.
func (c *Trees[V]) enforce() {
	for c.oldest != nil && (c.limits.Bytes > 0 && c.bytes() > c.limits.Bytes || c.limits.Entries > 0 && c.table.Len() > c.limits.Entries) {
		c.drop(c.oldest)
	}
}

// SetLimits changes the limits, at once.
func (c *Trees[V]) SetLimits(limits TreeLimits) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.limits = limits
	c.enforce()
}

// Sweep drops what was not used for the idle time, and tells the cache the time. It is to
// be called about once a second; now may start anywhere.
func (c *Trees[V]) Sweep(now time.Duration) {
	c.now.Store(int64(now))
	for c.sweep(now) {
	}
}

// sweptAtOnce is how many entries go before others get a turn.
const sweptAtOnce = 64

func (c *Trees[V]) sweep(now time.Duration) (more bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for range sweptAtOnce {
		t := c.oldest
		if c.limits.Idle <= 0 || t == nil || int64(now)-t.used < int64(c.limits.Idle) {
			return false
		}
		c.drop(t)
	}
	return true
}

// Reset drops all entries, and forgets how often something was found.
func (c *Trees[V]) Reset() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.clear()
	c.hits, c.misses = 0, 0
}

// Shed drops all entries.
func (c *Trees[V]) Shed() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.clear()
}

func (c *Trees[V]) clear() {
	c.table, c.texts, c.more = Table[tree[V], *tree[V]]{}, texts{}, 0
	c.oldest, c.newest = nil, nil
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
	return TreeStats{c.table.Len(), c.bytes(), c.hits, c.misses}
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
	all := make([]TreeEntry, 0, c.table.Len())
	for t := c.oldest; t != nil; t = t.newer {
		all = append(all, TreeEntry{strings.Clone(t.keyText()), t.hits, c.cost(int(t.text.size), t.more), time.Duration(now - t.used)})
	}
	return all
}
