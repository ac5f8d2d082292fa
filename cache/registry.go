package cache

import (
	"errors"
	"fmt"
	"hash/maphash"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"unique"
	"unsafe"
)

// ErrRegistryFull says that a statement that is new would exceed the registry's limit.
var ErrRegistryFull = errors.New("the registry of prepared statements is full")

const (
	// registryShards is the number of tables, each with a lock, so that loops rarely
	// wait for each other.
	registryShards = 64

	// shardBits are those of a hash that say which.
	shardBits = 6

	// StatementCost is what a statement costs in bytes besides its text, TextCost for
	// that, and its share of the table.
	StatementCost = int64(unsafe.Sizeof(Statement{}))
	TextCost      = int64(recordHeader)

	// EntryCost is what a table takes for each statement, without room for more.
	EntryCost = int64(unsafe.Sizeof(entry{})) + 4

	// dropsAtOnce is how many statements that nobody uses go when one more is not used:
	// more than one, so that there are fewer in the end if the limit has become lower.
	dropsAtOnce = 4

	// dropsUnderLock and readUnderLock are how many statements are dropped, or looked at,
	// before others get a turn at the shard.
	dropsUnderLock = 64
	readUnderLock  = 256

	// roomForName is about what a client's name for a statement costs in bytes.
	roomForName = NameCost + 8
)

// Statement is a prepared statement: its text and the types of its parameters, and the
// settings that its meaning depends on. There is one for all who prepare the same. Who
// does not use it, as [Registry.Intern] and [Registry.Release] count that, must not look at
// it: by then there may be another one in its place.
//
// It stays where it is in memory, since others point to it, and keeps a page from going
// back to the system; so it has only what must be in such a place.
type Statement struct {
	text atomic.Pointer[record] // as in a Parse, from the text on
	plan unique.Handle[string]  // constant; what else its meaning depends on
	id   atomic.Uint64          // makes its name on servers
	refs int32                  // guarded by the shard's mu
	at   uint32                 // in the shard's queue, if there are no refs; guarded by the shard's mu
}

// entry is a statement in the table of its shard.
type entry struct {
	st   *Statement
	hash uint32 // constant; its lowest bits choose the shard
	next uint32
}

// Link implements slotElement.
func (e *entry) Link() *uint32 { return &e.next }

// Hash implements slotElement.
func (e *entry) Hash() uint64 { return uint64(e.hash) >> shardBits }

// Body is the statement as a Parse holds it behind its name: the text, and the types of
// the parameters. Who keeps it keeps a block of other texts from being collected.
func (st *Statement) Body() string { return st.text.Load().text() }

// Text is the text, as bytes that must not be changed.
func (st *Statement) Text() []byte {
	sql := text(st.Body())
	return unsafe.Slice(unsafe.StringData(sql), len(sql)) // no copy: whoever reads it does not keep it
}

// Plan is what else the statement's meaning depends on.
func (st *Statement) Plan() string { return st.plan.Value() }

// ID makes the name of the statement on servers. It changes with [Registry.Renew], and is
// never used for anything else.
func (st *Statement) ID() uint64 { return st.id.Load() &^ (judged | leaves) }

// Bits of Statement.id that are none of the number.
const (
	judged = 1 << 63 // it is known whether
	leaves = 1 << 62 // it can leave something in a session
)

// Judged is what SetJudged was given, if it is known.
func (st *Statement) Judged() (leavesSomething, known bool) {
	id := st.id.Load()
	return id&leaves != 0, id&judged != 0
}

// SetJudged notes whether the statement can leave something in a session. It is forgotten
// with [Registry.Renew].
func (st *Statement) SetJudged(leavesSomething bool) {
	bits := uint64(judged)
	if leavesSomething {
		bits |= leaves
	}
	st.id.Or(bits)
}

// size is what the statement costs in bytes, but for its share of what it shares with others.
func (st *Statement) size() int64 { return st.text.Load().room() + StatementCost }

// Registry holds the statements of all clients, each once. Those that nobody uses any
// more are kept for a while, because the next client is likely to prepare them again. It
// is safe for concurrent use.
type Registry struct {
	seed   maphash.Seed
	lastID atomic.Uint64
	bytes  atomic.Int64 // of statements and tables
	count  atomic.Int64
	named  atomic.Int64 // bytes of all names of all clients
	names  atomic.Int64 // how many there are
	limit  atomic.Int64 // of bytes
	unused atomic.Int64 // how many that nobody uses are kept
	idle   atomic.Int64 // how many there are
	gone   atomic.Uint64
	schema atomic.Uint32
	shards [registryShards]registryShard
}

// registryShard has those statements whose hash ends with its number.
type registryShard struct {
	mu    sync.Mutex
	table slots[entry, *entry] // guarded by mu, as is all of the following
	texts texts
	idle  idleQueue
}

// bytes is what the shard takes. It is to be asked before a change and behind it.
func (s *registryShard) bytes() int64 {
	return s.table.bytes() + s.texts.bytes() + s.idle.bytes() + int64(s.table.len())*StatementCost
}

// Schema is a number that is another one after each [Registry.Altered].
func (r *Registry) Schema() uint32 { return r.schema.Load() }

// Altered notes that a client has changed tables, or what else statements are about. A
// statement that a server had before may now return something else than it did then, which
// Postgres refuses; one that is prepared now may not.
func (r *Registry) Altered() { r.schema.Add(1) }

// NewRegistry makes a registry that takes up to limit bytes and keeps up to unused
// statements that nobody uses.
func NewRegistry(limit int64, unused int) *Registry {
	r := &Registry{seed: maphash.MakeSeed()}
	r.SetLimits(limit, unused)
	return r
}

// SetLimits changes the limits. What is there already stays until it is released.
func (r *Registry) SetLimits(limit int64, unused int) {
	r.limit.Store(limit)
	r.unused.Store(int64(unused))
}

// Bytes is what all statements and the names of all clients take; it is what the limit is
// for.
func (r *Registry) Bytes() int64 { return r.bytes.Load() + r.named.Load() }

// Statements is what the texts of all statements take, in bytes, what is known of them and
// the tables, and the number of statements.
func (r *Registry) Statements() (texts, rest, n int64) {
	for i := range r.shards {
		s := &r.shards[i]
		s.mu.Lock()
		texts += s.texts.bytes()
		s.mu.Unlock()
	}
	return texts, max(r.bytes.Load()-texts, 0), r.count.Load()
}

// Named is what the names of all clients take, in bytes, and their number.
func (r *Registry) Named() (bytes, n int64) { return r.named.Load(), r.names.Load() }

// Verify counts again what Statements says; it stops all use of the registry meanwhile.
func (r *Registry) Verify() error {
	var bytes, n, idle int64
	for i := range r.shards {
		s := &r.shards[i]
		s.mu.Lock()
		defer s.mu.Unlock()
		bytes += s.bytes()
		var live int64
		for e := range s.table.all() {
			live += e.st.text.Load().room()
			n++
			if e.st.refs == 0 {
				idle++
			}
		}
		if err := s.texts.verify(); err != nil {
			return err
		}
		if live != s.texts.live {
			return fmt.Errorf("texts of statements take %d bytes, in blocks they take %d", live, s.texts.live)
		}
	}
	if bytes != r.bytes.Load() || n != r.count.Load() || idle != r.idle.Load() {
		return fmt.Errorf("%d statements of %d bytes, %d of them unused, are counted as %d of %d bytes, %d unused", n, bytes, idle, r.count.Load(), r.bytes.Load(), r.idle.Load())
	}
	return nil
}

// Len is the number of statements.
func (r *Registry) Len() int { return int(r.count.Load()) }

// Limit is the most bytes that there may be.
func (r *Registry) Limit() int64 { return r.limit.Load() }

// Evicted is how many statements that nobody used have been dropped.
func (r *Registry) Evicted() uint64 { return r.gone.Load() }

func (r *Registry) hashOf(body []byte, plan string) uint32 {
	h := maphash.Bytes(r.seed, body) ^ maphash.String(r.seed, plan)*31
	return uint32(h ^ h>>32)
}

func (r *Registry) shardOf(hash uint32) *registryShard { return &r.shards[hash%registryShards] }

// Intern returns the statement with a body and a plan, to be used until it is given to
// [Registry.Release]. The body is copied if it is new. Identity is compared in full. There
// must be room for a name of it, too, within the limit.
func (r *Registry) Intern(body []byte, plan string) (*Statement, error) {
	hash := r.hashOf(body, plan)
	s := r.shardOf(hash)
	s.mu.Lock()
	defer s.mu.Unlock()
	st := s.find(hash, body, plan)
	cost := s.costOf(st, body)
	for tried := int64(0); r.Bytes()+cost > r.limit.Load(); cost = s.costOf(st, body) {
		s.mu.Unlock()
		dropped := r.makeRoom(cost)
		s.mu.Lock()
		if dropped == 0 && cost == tried {
			return nil, ErrRegistryFull
		}
		tried = cost // what was dropped may have left less room in this shard
		st = s.find(hash, body, plan)
	}
	if st != nil {
		r.useLocked(s, st)
		return st, nil
	}
	st = &Statement{plan: unique.Make(plan), refs: 1}
	st.id.Store(r.lastID.Add(1))
	before := s.bytes()
	st.text.Store(s.texts.put(body, hash))
	s.table.insert(entry{st: st, hash: hash})
	r.bytes.Add(s.bytes() - before)
	r.count.Add(1)
	return st, nil
}

// costOf is what one more use of a statement adds to what all take, in bytes; nil is a new
// one.
func (s *registryShard) costOf(st *Statement, body []byte) int64 {
	if st != nil {
		return roomForName
	}
	return roomForName + StatementCost + s.texts.growth(len(body)) + s.table.growth()
}

func (s *registryShard) find(hash uint32, body []byte, plan string) *Statement {
	for e := s.table.first(uint64(hash) >> shardBits); e != nil; e = s.table.next(e) {
		if e.hash == hash && e.st.Body() == string(body) && e.st.plan.Value() == plan {
			return e.st
		}
	}
	return nil
}

// entryOf is that of a text.
func (s *registryShard) entryOf(text *record) *entry {
	e := s.table.first(uint64(text.hash) >> shardBits)
	for e.st.text.Load() != text {
		e = s.table.next(e)
	}
	return e
}

func (r *Registry) useLocked(s *registryShard, st *Statement) {
	if st.refs == 0 {
		r.notIdle(s, st)
	}
	st.refs++
}

// notIdle takes a statement out of those that nobody uses.
func (r *Registry) notIdle(s *registryShard, st *Statement) {
	before := s.bytes()
	s.idle.remove(st)
	r.bytes.Add(s.bytes() - before)
	r.idle.Add(-1)
}

// Release ends the use of a statement.
func (r *Registry) Release(st *Statement) {
	s := r.shardOf(st.text.Load().hash)
	s.mu.Lock()
	defer s.mu.Unlock()
	st.refs--
	if st.refs < 0 {
		panic("bug: a statement is released more often than it was interned")
	}
	if st.refs > 0 {
		return
	}
	before := s.bytes()
	s.idle.push(st)
	r.bytes.Add(s.bytes() - before)
	r.idle.Add(1)
	for range dropsAtOnce {
		tooMany := r.idle.Load() > r.unused.Load() || r.Bytes() > r.limit.Load()
		if !tooMany || s.idle.n == 0 {
			return
		}
		r.dropLocked(s, s.idle.oldest())
	}
}

// Renew gives a statement a new ID, so that no server has it any more: what servers have
// under the old one is out of date.
func (r *Registry) Renew(st *Statement) { st.id.Store(r.lastID.Add(1)) }

// Reset drops all statements that nobody uses, and returns how many.
func (r *Registry) Reset() int {
	return r.dropWhile(func() bool { return true })
}

// makeRoom drops statements that nobody uses until there is room for so many bytes, or
// no such statement is left, and returns how many. No lock may be held.
func (r *Registry) makeRoom(cost int64) int {
	return r.dropWhile(func() bool { return r.Bytes()+cost > r.limit.Load() })
}

// dropWhile drops statements that nobody uses, a few at a time so that nobody waits long
// for a shard. No lock may be held.
func (r *Registry) dropWhile(wanted func() bool) (n int) {
	for i := range r.shards {
		s := &r.shards[i]
		for more := true; more; {
			s.mu.Lock()
			for range dropsUnderLock {
				if more = s.idle.n > 0 && wanted(); !more {
					break
				}
				r.dropLocked(s, s.idle.oldest())
				n++
			}
			s.mu.Unlock()
		}
	}
	return n
}

// noText is what a statement has that is gone, so that whoever still points to it does not
// keep a block; constant.
var noText record

// dropLocked drops a statement that nobody uses.
func (r *Registry) dropLocked(s *registryShard, st *Statement) {
	r.notIdle(s, st)
	r.gone.Add(1)
	r.count.Add(-1)
	before := s.bytes()
	text := st.text.Load()
	s.table.remove(s.entryOf(text))
	st.text.Store(&noText)
	s.texts.drop(text)
	s.texts.tidy(text.room(), s.moved)
	if s.table.len() == 0 {
		s.idle = idleQueue{}
	}
	r.bytes.Add(s.bytes() - before)
}

// moved is called when a text has another place. A statement that nobody uses gets
// another one, too.
func (s *registryShard) moved(from, to *record) {
	e := s.entryOf(from)
	if st := e.st; st.refs == 0 {
		e.st = &Statement{plan: st.plan}
		e.st.id.Store(st.id.Load())
		s.idle.replace(st, e.st)
		st.text.Store(&noText)
	}
	e.st.text.Store(to)
}

// Info is a statement as the console shows it.
type Info struct {
	ID     uint64
	Text   string
	UsedBy int
	Bytes  int64
}

// Each calls f for every statement, shard by shard. What is dropped meanwhile may be left
// out.
func (r *Registry) Each(f func(Info)) {
	var all []*Statement
	for i := range r.shards {
		s := &r.shards[i]
		all = all[:0]
		s.mu.Lock()
		for e := range s.table.all() {
			all = append(all, e.st)
		}
		s.mu.Unlock()
		for part := range slices.Chunk(all, readUnderLock) {
			for _, info := range s.infos(part) {
				info.Text = strings.Clone(text(info.Text)) // it would keep others
				f(info)
			}
		}
	}
}

// infos are those of statements that are still there. Their texts are not copied.
func (s *registryShard) infos(of []*Statement) (infos []Info) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, st := range of {
		if st.text.Load() != &noText {
			infos = append(infos, Info{st.ID(), st.Body(), int(st.refs), st.size()})
		}
	}
	return infos
}

// text is the SQL text at the start of a body.
func text(body string) string {
	if i := strings.IndexByte(body, 0); i >= 0 {
		return body[:i]
	}
	return body
}
