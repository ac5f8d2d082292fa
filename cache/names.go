package cache

import (
	"hash/maphash"
	"strings"
	"unsafe"

	"github.com/pgebb/pgebb/internal/memory"
)

// nameSeed is that of the hashes of all names; constant.
var nameSeed = maphash.MakeSeed()

// name is a client's name for a statement.
type name struct {
	st    *Statement
	long  *string // the name, if it is long; constant
	next  uint32  // of its bucket
	size  uint8   // isLong, or how many bytes of short the name is; constant
	short [11]byte
}

// isLong is the size of a name that is not in its short.
const isLong = 255

// NameCost is what a name costs in bytes besides its share of the table, if it is short;
// a longer one takes its text besides, and LongNameCost.
const (
	NameCost     = int64(unsafe.Sizeof(name{}))
	LongNameCost = int64(unsafe.Sizeof(""))
)

func newName(text string, st *Statement) name {
	n := name{st: st, size: isLong}
	if len(text) > len(n.short) {
		text = strings.Clone(text)
		n.long = &text
		return n
	}
	n.size = uint8(copy(n.short[:], text))
	return n
}

// text is the name. If it is short, it changes with what is in the slot.
func (n *name) text() string {
	if n.size == isLong {
		return *n.long
	}
	return unsafe.String(&n.short[0], n.size)
}

// Link implements slotElement.
func (n *name) Link() *uint32 { return &n.next }

// Hash implements slotElement.
func (n *name) Hash() uint64 { return maphash.String(nameSeed, n.text()) }

// besides is what the name takes besides its slot, in bytes.
func (n *name) besides() int64 {
	if n.size == isLong {
		return LongNameCost + memory.SizeOf(len(*n.long))
	}
	return 0
}

// Names are the names that one client has given to statements of a registry, which counts
// their bytes as its own. They are not safe for concurrent use.
type Names struct {
	r     *Registry
	table slots[name, *name]
	long  int64 // bytes of what is besides the table
}

// NewNames returns no names yet.
func (r *Registry) NewNames() *Names {
	n := &Names{r: r}
	r.named.Add(int64(unsafe.Sizeof(*n)))
	return n
}

// Len is the number of names.
func (n *Names) Len() int { return n.table.len() }

// Bytes is what they take, without the statements.
func (n *Names) Bytes() int64 { return int64(unsafe.Sizeof(*n)) + n.long + n.table.bytes() }

// Recount is what Bytes should be, by looking at every name.
func (n *Names) Recount() int64 {
	sum := int64(unsafe.Sizeof(*n)) + n.table.bytes()
	for e := range n.table.all() {
		sum += e.besides()
	}
	return sum
}

// Get is the statement with a name, nil if there is none.
func (n *Names) Get(text []byte) *Statement {
	if e := n.find(unsafe.String(unsafe.SliceData(text), len(text))); e != nil {
		return e.st
	}
	return nil
}

func (n *Names) find(text string) *name {
	e := n.table.first(maphash.String(nameSeed, text))
	for e != nil && e.text() != text {
		e = n.table.next(e)
	}
	return e
}

// Put gives a statement a name that is not taken.
func (n *Names) Put(text string, st *Statement) {
	before := n.Bytes()
	e := newName(text, st)
	n.long += e.besides()
	n.table.insert(e)
	n.r.named.Add(n.Bytes() - before)
	n.r.names.Add(1)
}

// Delete drops a name, and returns the statement that it stood for; nil if none.
func (n *Names) Delete(text string) *Statement {
	e := n.find(text)
	if e == nil {
		return nil
	}
	before, st := n.Bytes(), e.st
	n.long -= e.besides()
	n.table.remove(e)
	n.r.named.Add(n.Bytes() - before)
	n.r.names.Add(-1)
	return st
}

// Close releases the statements of all names. The names must not be used any more. It
// takes about a microsecond for each; any goroutine may do it.
func (n *Names) Close() {
	for e := range n.table.all() {
		n.r.Release(e.st)
	}
	n.r.named.Add(-n.Bytes())
	n.r.names.Add(-int64(n.Len()))
	*n = Names{}
}
