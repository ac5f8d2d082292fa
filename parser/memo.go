package parser

import (
	"hash/maphash"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/pgebb/pgebb/internal/memory"
	"github.com/pgebb/pgebb/internal/verdict"
)

const (
	// memoSlots is how many texts are remembered as they are, and memoText how long they
	// may be in bytes.
	memoSlots = 1 << 10
	memoText  = 768

	// MemoBytes is the most that all of it takes.
	MemoBytes = 1 << 20

	// memoIdle is how long what is remembered stays that nobody asks for.
	memoIdle = time.Minute
)

// memos remember verdicts by the very bytes of a text, so that one that comes again and
// again need not be looked through, and by what is left of a text without its constants, if
// they do not matter. A text is remembered when it comes for the second
// time in a row for its place, because most that differ in a constant come once. What is
// remembered holds until the cache is swept, so that the cache learns what is in use.
type memos struct {
	seed  maphash.Seed
	slots [memoSlots]atomic.Pointer[memo]
	seen  [memoSlots]atomic.Uint32 // of the last text without a memo, part of its hash
	bytes atomic.Int64             // of all memos
}

// memo is one text. All but hits is constant.
type memo struct {
	text  string
	plain bool // it is an outline: of all texts that have it the verdict is the same
	needs verdict.Needs
	sweep int64 // when the cache had been swept last
	v     verdict.Verdict
	hits  atomic.Uint32
}

// find returns the memo of a text, or of an outline if it is to be plain, if there is one
// that holds; place is where to put one.
func (m *memos) find(sql []byte, plain bool, needs verdict.Needs, sweep int64) (found *memo, place uint64) {
	place = maphash.Bytes(m.seed, sql)
	found = m.slots[place%memoSlots].Load()
	if found == nil || found.sweep != sweep || found.needs != needs || plain && !found.plain || found.text != string(sql) {
		return nil, place
	}
	found.hits.Add(1)
	return found, place
}

// hits is how often a memo that holds no longer was used for a text since the cache was
// told.
func (m *memos) hits(sql []byte, place uint64) uint64 {
	old := m.slots[place%memoSlots].Load()
	if old == nil || old.text != string(sql) {
		return 0
	}
	return uint64(old.hits.Swap(0))
}

// settle tells the cache how often memos were used that it was not told of yet.
func (m *memos) settle(used func(key []byte, n uint64)) {
	for i := range m.slots {
		o := m.slots[i].Load()
		if o == nil {
			continue
		}
		if n := o.hits.Swap(0); n > 0 {
			used(o.key(), uint64(n))
		}
	}
}

// key is what the cache has the text or outline under.
func (o *memo) key() []byte {
	if o.plain {
		return []byte(o.text)
	}
	f, key, _ := scan([]byte(o.text), nil, false)
	if f.verbatim {
		_, key, _ = scan([]byte(o.text), nil, true)
	}
	return key
}

// put remembers a verdict, if the text or outline has come before.
func (m *memos) put(sql []byte, plain bool, needs verdict.Needs, sweep int64, place uint64, v verdict.Verdict) {
	seen := &m.seen[place%memoSlots]
	if part := uint32(place >> 32); seen.Swap(part) != part {
		return
	}
	m.set(place%memoSlots, &memo{text: string(sql), plain: plain, needs: needs, sweep: sweep, v: v})
}

// set fills a slot, or empties it with nil.
func (m *memos) set(slot uint64, to *memo) {
	old := m.slots[slot].Swap(to)
	m.bytes.Add(to.cost() - old.cost())
}

// cost is what a memo takes in bytes.
func (m *memo) cost() int64 {
	if m == nil {
		return 0
	}
	return memory.SizeOf(int(unsafe.Sizeof(*m))) + memory.SizeOf(len(m.text))
}

// sweep forgets what was not asked for in the idle time.
func (m *memos) sweep(now int64) {
	for i := range m.slots {
		if old := m.slots[i].Load(); old != nil && now-old.sweep >= int64(memoIdle) {
			m.set(uint64(i), nil)
		}
	}
}

// reset forgets everything.
func (m *memos) reset() {
	for i := range m.slots {
		m.set(uint64(i), nil)
		m.seen[i].Store(0)
	}
}
