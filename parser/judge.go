package parser

import (
	"hash/maphash"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	libpgquery "github.com/pganalyze/pg_query_go/v6/parser"

	"github.com/pgebb/pgebb/cache"
	"github.com/pgebb/pgebb/internal/verdict"
)

const (
	// inlineTokens is up to how many tokens a text is parsed where it is asked about: that
	// takes a fraction of a millisecond. Whoever asks must not be held up for longer.
	inlineTokens = 200

	// parsers is how many texts are parsed at the same time besides, and queued how many
	// may wait for it; more are judged by their words.
	parsers = 1
	queued  = 64

	// maxBuffer is the largest buffer in bytes that is kept for the next text.
	maxBuffer = 32 << 10
)

// Judge makes verdicts, and keeps them. It is safe for concurrent use.
type Judge struct {
	trees   *cache.Trees[verdict.Verdict]
	slow    atomic.Int64  // ns; a parse that takes longer is reported
	report  func(Parse)   // constant
	slots   chan struct{} // of parses that run on their own
	waiting atomic.Int32  // how many wait for a slot or have one
	memos   memos
	buffers sync.Pool // of *[]byte, for texts without their constants

	parses  atomic.Uint64
	taken   atomic.Int64 // ns
	refused atomic.Uint64
}

// Parse is what is reported of a parse that took long.
type Parse struct {
	Text     string // without constants and comments, or empty if it may hold a secret
	Tokens   int
	Duration time.Duration
}

// Options are what a Judge is made of.
type Options struct {
	Limits cache.TreeLimits
	// Slow is from when on a parse is reported to Report; 0 is never.
	Slow   time.Duration
	Report func(Parse)
}

// NewJudge makes a Judge. It starts no goroutine before it needs one.
func NewJudge(o Options) *Judge {
	j := &Judge{trees: cache.NewTrees[verdict.Verdict](o.Limits), report: o.Report, slots: make(chan struct{}, parsers)}
	j.memos.seed = maphash.MakeSeed()
	j.slow.Store(int64(o.Slow))
	j.buffers.New = func() any { return new([]byte) }
	return j
}

// Warm parses something: the first time takes some ten milliseconds and three megabytes, for
// the parser's code and what is noted of the trees that it makes, and a loop must not
// wait for that.
func Warm() {
	const sql = "SELECT a FROM b WHERE c = 1"
	f, _, _ := scan([]byte(sql), nil, false)
	judge(f, sql)
}

// SetLimits changes the limits of the cache, and when a parse is reported.
func (j *Judge) SetLimits(limits cache.TreeLimits, slow time.Duration) {
	j.slow.Store(int64(slow))
	j.trees.SetLimits(limits)
}

// Cache is where verdicts and trees are kept. How often they were used is up to date after
// [Judge.Settle].
func (j *Judge) Cache() *cache.Trees[verdict.Verdict] { return j.trees }

// Settle tells the cache how often verdicts were used that it was not asked for.
func (j *Judge) Settle() { j.memos.settle(j.trees.Used) }

// Reset forgets everything that is kept, and how often it was asked for.
func (j *Judge) Reset() {
	j.memos.reset()
	j.trees.Reset()
}

// Shed forgets everything that is kept, because there is little memory.
func (j *Judge) Shed() {
	j.memos.reset()
	j.trees.Shed()
}

// Sweep forgets what was not asked for in a while, see [cache.Trees.Sweep].
func (j *Judge) Sweep(now time.Duration) {
	j.memos.sweep(int64(now))
	j.trees.Sweep(now)
}

// Bytes is what everything that is kept takes.
func (j *Judge) Bytes() int64 { return j.trees.Stats().Bytes + j.memos.bytes.Load() }

// Stats are the figures of a Judge.
type Stats struct {
	Parses  uint64        // texts given to the parser
	Taken   time.Duration // by all of them together
	Refused uint64        // texts that were judged by their words, because they were too large, or too many at once
}

// Stats returns them.
func (j *Judge) Stats() Stats {
	return Stats{j.parses.Load(), time.Duration(j.taken.Load()), j.refused.Load()}
}

// Judge says what is known of an SQL text, which is not kept. It never takes long: a text
// that takes long to parse is parsed by a goroutine, which ends then, and judged by its words
// until that is done.
func (j *Judge) Judge(sql []byte, needs verdict.Needs) verdict.Verdict {
	if len(sql) > memoText {
		return j.look(question{sql: sql, needs: needs}).v
	}
	sweep := j.trees.Swept()
	m, place := j.memos.find(sql, false, needs, sweep)
	if m != nil {
		return m.v
	}
	return j.outlined(sql, needs, sweep, place)
}

// outlined judges a text that is not remembered as it is, by its outline if that is
// remembered. place is that of the text.
func (j *Judge) outlined(sql []byte, needs verdict.Needs, sweep int64, place uint64) verdict.Verdict {
	q := question{sql: sql, needs: needs, hits: j.memos.hits(sql, place)}
	var dst [memoText]byte
	n, plain := outline(sql, &dst)
	var at uint64
	if plain {
		var m *memo
		if m, at = j.memos.find(dst[:n], true, needs, sweep); m != nil {
			m.hits.Add(uint32(q.hits))
			j.memos.put(sql, false, needs, sweep, place, m.v)
			return m.v
		}
		if at != place {
			q.hits += j.memos.hits(dst[:n], at)
		}
	}
	a := j.look(q)
	plain = plain && !a.verbatim
	if a.final && plain {
		j.memos.put(dst[:n], true, needs, sweep, at, a.v)
	}
	if a.final && !(plain && at == place) {
		j.memos.put(sql, false, needs, sweep, place, a.v)
	}
	return a.v
}

// answer is what comes of looking through a text.
type answer struct {
	v        verdict.Verdict
	final    bool // it will be judged in the same way the next time
	verbatim bool // one with other constants need not be
}

// look looks through a text.
func (j *Judge) look(q question) answer {
	buffer := j.buffers.Get().(*[]byte)
	f, key, hint := scan(q.sql, (*buffer)[:0], false)
	v, final := j.decide(q, f, key)
	if cap(key) <= maxBuffer {
		*buffer = key[:0]
	}
	j.buffers.Put(buffer)
	return answer{hint.on(v), final, f.verbatim}
}

// question is what a Judge is asked.
type question struct {
	sql   []byte
	needs verdict.Needs
	hits  uint64 // how often the verdict was asked for meanwhile
}

// decide answers with what was found out by a scan if that is enough, and asks the cache
// and the parser otherwise. key is valid during the call only.
func (j *Judge) decide(q question, f facts, key []byte) (v verdict.Verdict, final bool) {
	if !f.needsParser(q.needs) {
		return byWords(f.flags, q.sql)
	}
	if f.verbatim {
		_, key, _ = scan(q.sql, nil, true)
	}
	if v, ok := j.trees.Get(key, q.hits); ok {
		return v, true
	}
	unknown := f.flags | verdict.Unknown
	switch {
	case f.tokens > maxTokens || len(key) > maxText || f.depth > maxDepth():
		j.refused.Add(1)
		return byWords(unknown, q.sql)
	case f.tokens <= inlineTokens:
		return j.parse(f, string(key)), true
	case j.waiting.Add(1) > queued:
		j.waiting.Add(-1)
		j.refused.Add(1)
	default:
		go j.parseLater(f, string(key))
	}
	v, _ = byWords(unknown, q.sql)
	return v, false
}

// byWords is the verdict on a text that is not parsed. keep says that it may be kept besides the
// text: with names it is not accounted for.
func byWords(flags verdict.Flags, sql []byte) (v verdict.Verdict, keep bool) {
	v.Flags = flags
	if flags&verdict.Unnamed != 0 {
		v.Settings = customNames(sql)
	}
	return v, len(v.Settings) == 0
}

// parseLater ends when it has parsed the text, of which there is no second copy: half of the
// slots of the heap would be empty when that is gone.
func (j *Judge) parseLater(f facts, text string) {
	j.slots <- struct{}{}
	key := unsafe.Slice(unsafe.StringData(text), len(text))
	if _, ok := j.trees.Get(key, 0); !ok { // somebody else may have asked meanwhile
		j.parse(f, text)
	}
	<-j.slots
	j.waiting.Add(-1)
}

// Wait waits until nothing is being parsed.
func (j *Judge) Wait() {
	for j.waiting.Load() > 0 {
		j.slots <- struct{}{}
		<-j.slots
	}
}

// needsParser reports whether the words are not enough.
func (f *facts) needsParser(needs verdict.Needs) bool {
	switch {
	case f.doubtful:
		return false // the parser could read it in another way than Postgres
	case needs&verdict.Tree != 0:
		return f.tokens > 0
	case needs&verdict.State != 0 && !f.exactState && f.flags&verdict.Session&^verdict.Lock != 0,
		needs&verdict.Locks != 0 && !f.exactState && f.flags&verdict.Lock != 0,
		needs&verdict.Routing != 0 && !f.exactWrite:
		return true
	}
	return false
}

// on adds what comments have said.
func (h role) on(v verdict.Verdict) verdict.Verdict {
	switch h {
	case primaryRole:
		v.Flags |= verdict.Primary
	case replicaRole:
		v.Flags |= verdict.Replica
	}
	return v
}

// parse gives a text to the parser, and keeps what comes of it.
func (j *Judge) parse(f facts, text string) verdict.Verdict {
	start := time.Now()
	v, tree := judge(f, text)
	taken := time.Since(start)
	j.parses.Add(1)
	j.taken.Add(int64(taken))
	if slow := j.slow.Load(); slow > 0 && taken >= time.Duration(slow) && j.report != nil {
		p := Parse{Tokens: f.tokens, Duration: taken}
		if !f.verbatim {
			p.Text = text
		}
		j.report(p)
	}
	more := int64(0)
	for _, s := range v.Settings {
		more += int64(len(s.Name) + len(s.Value) + settingSize)
	}
	j.trees.Put(text, v, more, tree)
	return v
}

// settingSize is what a setting takes in bytes besides its texts.
const settingSize = 48

// judge parses a text that is within the limits, and puts what the parser says and what
// the words said together.
func judge(f facts, text string) (v verdict.Verdict, tree []byte) {
	tree, err := libpgquery.ParseToProtobuf(text)
	if err != nil {
		// It may be in the grammar of a newer Postgres.
		v, _ = byWords(f.flags|verdict.Unknown, []byte(text))
		return v, nil
	}
	r, err := read(tree)
	if err != nil {
		v, _ = byWords(f.flags|verdict.Unknown, []byte(text))
		return v, nil
	}
	if f.exactWrite && f.exactState {
		v, _ = byWords(f.flags, []byte(text))
		return v, tree
	}
	v = r.v
	if r.body {
		v.Flags |= f.flags & (verdict.Session | verdict.Unnamed | verdict.Discard)
		v.Settings = append(v.Settings, customNames([]byte(text))...)
	}
	return v, tree
}
