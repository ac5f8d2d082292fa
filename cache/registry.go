package cache

import (
	"errors"
	"hash/maphash"
	"sync"
	"sync/atomic"
	"unsafe"
)

// ErrRegistryFull says that a statement that is new would exceed the registry's limit.
var ErrRegistryFull = errors.New("the registry of prepared statements is full")

const (
	// registryShards is the number of maps, so that the rebuild of one, which
	// holds its lock, takes a fraction of a millisecond even with a million entries.
	registryShards = 256

	// mapSlot is what an entry takes of a map on average, in bytes: a hash, a
	// pointer and its control byte, at the load that maps have on average.
	mapSlot = 25

	// statementOverhead is what a statement costs in bytes besides its texts.
	statementOverhead = int64(unsafe.Sizeof(Statement{})) + mapSlot
)

// Statement is a prepared statement: its text and the types of its parameters, and the
// settings that its meaning depends on. There is one for all who prepare the same.
type Statement struct {
	body  string        // constant; as in a Parse, from the text on
	plan  string        // constant; what else its meaning depends on
	id    atomic.Uint64 // makes its name on servers
	next  *Statement    // with the same hash; guarded by the shard's mu
	older *Statement    // in the list of those nobody uses; guarded by the shard's mu
	newer *Statement
	hash  uint64 // constant
	refs  int32  // guarded by the shard's mu
	idle  bool   // in that list; guarded by the shard's mu
}

// Body is the statement as a Parse holds it behind its name: the text, and the types of
// the parameters. It must not be changed.
func (st *Statement) Body() string { return st.body }

// ID makes the name of the statement on servers. It changes with [Registry.Renew], and is
// never used for anything else.
func (st *Statement) ID() uint64 { return st.id.Load() }

// size is what the statement costs in bytes. Texts are allocated in size classes.
func (st *Statement) size() int64 { return sizeClass(len(st.body)) + statementOverhead }

// sizeClass is about what the allocator takes for a text.
func sizeClass(n int) int64 {
	switch {
	case n <= 32:
		return int64((n + 7) &^ 7)
	case n <= 256:
		return int64((n + 15) &^ 15)
	default:
		return int64(n + n/16)
	}
}

// Registry holds the statements of all clients, each once. Those that nobody uses any
// more are kept for a while, because the next client is likely to prepare them again. It
// is safe for concurrent use.
type Registry struct {
	seed   maphash.Seed
	lastID atomic.Uint64
	bytes  atomic.Int64
	count  atomic.Int64
	limit  atomic.Int64 // of bytes
	unused atomic.Int64 // how many that nobody uses are kept
	idle   atomic.Int64 // how many there are
	gone   atomic.Uint64
	shards [registryShards]registryShard
}

type registryShard struct {
	mu     sync.Mutex
	byHash map[uint64]*Statement
	peak   int        // most entries since the map was made
	oldest *Statement // of those nobody uses
	newest *Statement
}

// NewRegistry makes a registry that takes up to limit bytes and keeps up to unused
// statements that nobody uses.
func NewRegistry(limit int64, unused int) *Registry {
	r := &Registry{seed: maphash.MakeSeed()}
	r.SetLimits(limit, unused)
	for i := range r.shards {
		r.shards[i].byHash = make(map[uint64]*Statement)
	}
	return r
}

// SetLimits changes the limits. What is there already stays until it is released.
func (r *Registry) SetLimits(limit int64, unused int) {
	r.limit.Store(limit)
	r.unused.Store(int64(unused))
}

// Bytes is what all statements take, and Len how many there are.
func (r *Registry) Bytes() int64 { return r.bytes.Load() }

// Len is the number of statements.
func (r *Registry) Len() int { return int(r.count.Load()) }

// Limit is the most bytes that there may be.
func (r *Registry) Limit() int64 { return r.limit.Load() }

// Evicted is how many statements that nobody used have been dropped.
func (r *Registry) Evicted() uint64 { return r.gone.Load() }

func (r *Registry) hashOf(body []byte, plan string) uint64 {
	return maphash.Bytes(r.seed, body) ^ maphash.String(r.seed, plan)*31
}

// Intern returns the statement with a body and a plan, to be used until it is given to
// [Registry.Release]. The body is copied if it is new. Identity is compared in full.
func (r *Registry) Intern(body []byte, plan string) (*Statement, error) {
	hash := r.hashOf(body, plan)
	s := &r.shards[hash%registryShards]
	s.mu.Lock()
	defer s.mu.Unlock()
	for st := s.byHash[hash]; st != nil; st = st.next {
		if st.body == string(body) && st.plan == plan {
			r.useLocked(s, st)
			return st, nil
		}
	}
	cost := sizeClass(len(body)) + statementOverhead
	if r.bytes.Load()+cost > r.limit.Load() && !r.makeRoomLocked(s, cost) {
		return nil, ErrRegistryFull
	}
	st := &Statement{body: string(body), plan: plan, hash: hash, refs: 1, next: s.byHash[hash]}
	st.id.Store(r.lastID.Add(1))
	s.byHash[hash] = st
	s.peak = max(s.peak, len(s.byHash))
	r.bytes.Add(st.size())
	r.count.Add(1)
	return st, nil
}

func (r *Registry) useLocked(s *registryShard, st *Statement) {
	if st.idle {
		s.unlink(st)
		r.idle.Add(-1)
	}
	st.refs++
}

// Release ends the use of a statement.
func (r *Registry) Release(st *Statement) {
	s := &r.shards[st.hash%registryShards]
	s.mu.Lock()
	defer s.mu.Unlock()
	st.refs--
	if st.refs < 0 {
		panic("bug: a statement is released more often than it was interned")
	}
	if st.refs > 0 {
		return
	}
	s.link(st)
	r.idle.Add(1)
	for r.idle.Load() > r.unused.Load() && s.oldest != nil {
		r.dropLocked(s, s.oldest)
	}
}

// Renew gives a statement a new ID, so that no server has it any more: what servers have
// under the old one is out of date.
func (r *Registry) Renew(st *Statement) { st.id.Store(r.lastID.Add(1)) }

// Reset drops all statements that nobody uses, and returns how many.
func (r *Registry) Reset() int {
	n := 0
	for i := range r.shards {
		s := &r.shards[i]
		s.mu.Lock()
		for s.oldest != nil {
			r.dropLocked(s, s.oldest)
			n++
		}
		s.mu.Unlock()
	}
	return n
}

// makeRoomLocked drops statements of the shard that nobody uses until there is room.
func (r *Registry) makeRoomLocked(s *registryShard, cost int64) bool {
	for s.oldest != nil && r.bytes.Load()+cost > r.limit.Load() {
		r.dropLocked(s, s.oldest)
	}
	return r.bytes.Load()+cost <= r.limit.Load()
}

func (r *Registry) dropLocked(s *registryShard, st *Statement) {
	s.unlink(st)
	r.idle.Add(-1)
	r.gone.Add(1)
	r.count.Add(-1)
	r.bytes.Add(-st.size())
	if s.byHash[st.hash] == st {
		if st.next == nil {
			delete(s.byHash, st.hash)
		} else {
			s.byHash[st.hash] = st.next
		}
	} else {
		p := s.byHash[st.hash]
		for p.next != st {
			p = p.next
		}
		p.next = st.next
	}
	s.shrink()
}

// shrink rebuilds the map at the size of what lives when it is mostly empty: a map of
// Go's never gets smaller.
func (s *registryShard) shrink() {
	if s.peak < 256 || len(s.byHash) > s.peak/4 {
		return
	}
	smaller := make(map[uint64]*Statement, len(s.byHash))
	for h, st := range s.byHash {
		smaller[h] = st
	}
	s.byHash, s.peak = smaller, len(smaller)
}

// link appends a statement to the list of those nobody uses.
func (s *registryShard) link(st *Statement) {
	st.idle, st.older, st.newer = true, s.newest, nil
	if s.newest != nil {
		s.newest.newer = st
	} else {
		s.oldest = st
	}
	s.newest = st
}

func (s *registryShard) unlink(st *Statement) {
	if st.older != nil {
		st.older.newer = st.newer
	} else {
		s.oldest = st.newer
	}
	if st.newer != nil {
		st.newer.older = st.older
	} else {
		s.newest = st.older
	}
	st.idle, st.older, st.newer = false, nil, nil
}

// Info is a statement as the console shows it.
type Info struct {
	ID     uint64
	Text   string
	UsedBy int
	Bytes  int64
}

// Each calls f for every statement, shard by shard; those of a shard are copied first.
func (r *Registry) Each(f func(Info)) {
	for i := range r.shards {
		s := &r.shards[i]
		var infos []Info
		s.mu.Lock()
		for _, st := range s.byHash {
			for ; st != nil; st = st.next {
				infos = append(infos, Info{st.ID(), text(st.body), int(st.refs), st.size()})
			}
		}
		s.mu.Unlock()
		for _, info := range infos {
			f(info)
		}
	}
}

// text is the SQL text at the start of a body.
func text(body string) string {
	for i := range len(body) {
		if body[i] == 0 {
			return body[:i]
		}
	}
	return body
}
