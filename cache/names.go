package cache

import (
	"hash/maphash"
	"iter"
	"unsafe"

	"github.com/pgebb/pgebb/internal/memory"
)

// nameSeed is that of the hashes of all names; constant.
var nameSeed = maphash.MakeSeed()

// name is a client's name for a statement.
type name struct {
	text string // constant
	st   *Statement
	next *name // of its bucket
}

// NameCost is what a name costs in bytes besides its text and its share of the table.
const NameCost = int64(unsafe.Sizeof(name{}))

// Link implements [Element].
func (n *name) Link() **name { return &n.next }

// Hash implements [Element].
func (n *name) Hash() uint64 { return maphash.String(nameSeed, n.text) }

func (n *name) size() int64 { return NameCost + memory.SizeOf(len(n.text)) }

// Names are the names that one client has given to statements of a registry, which counts
// their bytes as its own. They are not safe for concurrent use.
type Names struct {
	r     *Registry
	table Table[name, *name]
	bytes int64 // of the elements of the table
}

// NewNames returns no names yet.
func (r *Registry) NewNames() *Names {
	n := &Names{r: r}
	r.named.Add(int64(unsafe.Sizeof(*n)))
	return n
}

// Len is the number of names.
func (n *Names) Len() int { return n.table.Len() }

// Bytes is what they take, without the statements.
func (n *Names) Bytes() int64 { return int64(unsafe.Sizeof(*n)) + n.bytes + n.table.Bytes() }

// Recount is what Bytes should be, by looking at every name.
func (n *Names) Recount() int64 {
	sum := int64(unsafe.Sizeof(*n)) + n.table.Bytes()
	for e := range n.table.All() {
		sum += e.size()
	}
	return sum
}

// Get is the statement with a name, nil if there is none.
func (n *Names) Get(text []byte) *Statement {
	for e := n.table.First(maphash.Bytes(nameSeed, text)); e != nil; e = e.next {
		if e.text == string(text) {
			return e.st
		}
	}
	return nil
}

// Put gives a statement a name that is not taken.
func (n *Names) Put(text string, st *Statement) {
	before := n.Bytes()
	e := &name{text: text, st: st}
	n.table.Insert(e)
	n.bytes += e.size()
	n.r.named.Add(n.Bytes() - before)
	n.r.names.Add(1)
}

// Delete drops a name, and returns the statement that it stood for; nil if none.
func (n *Names) Delete(text string) *Statement {
	e := n.table.First(maphash.String(nameSeed, text))
	for e != nil && e.text != text {
		e = e.next
	}
	if e == nil {
		return nil
	}
	before := n.Bytes()
	n.table.Remove(e)
	n.bytes -= e.size()
	n.r.named.Add(n.Bytes() - before)
	n.r.names.Add(-1)
	return e.st
}

// All are the names with their statements, in no order. They must not be changed
// meanwhile.
func (n *Names) All() iter.Seq2[string, *Statement] {
	return func(yield func(string, *Statement) bool) {
		for e := range n.table.All() {
			if !yield(e.text, e.st) {
				return
			}
		}
	}
}

// Close releases the statements of all names. The names must not be used any more. It
// takes about a microsecond for each; any goroutine may do it.
func (n *Names) Close() {
	for e := range n.table.All() {
		n.r.Release(e.st)
	}
	n.r.named.Add(-n.Bytes())
	n.r.names.Add(-int64(n.Len()))
	*n = Names{}
}
