package memory

import (
	"fmt"
	"strings"
	"sync/atomic"
)

// Line is a line of an account of the process's memory. Lines make a tree by their names:
// "rss/ledger/clients" is a part of "rss/ledger", and bytes of the parts of a line sum up
// to its own.
type Line struct {
	Name  string
	Doc   string
	Bytes int64
	Limit int64 // 0 for none
	Items int64
}

// Parent is the name of the line that this one is a part of; empty for "rss".
func (l Line) Parent() string {
	if i := strings.LastIndexByte(l.Name, '/'); i >= 0 {
		return l.Name[:i]
	}
	return ""
}

// Account is what the memory of the process is taken by.
type Account struct {
	Lines    []Line // the tree, each line before its parts
	Holdings []Holding
	Resident Resident
	Heap     Heap
	C        CHeap
	Cgroup   Cgroup
	Trimmed  Trimmed // by the reclaimer since the start
}

// Bytes is what a line has, 0 if there is none with the name.
func (a *Account) Bytes(name string) int64 {
	for _, l := range a.Lines {
		if l.Name == name {
			return l.Bytes
		}
	}
	return 0
}

// Unaccounted is what of the resident pages nothing explains.
func (a *Account) Unaccounted() int64 { return a.Bytes("rss/unaccounted") }

// Accountant makes accounts. It is safe for concurrent use.
type Accountant struct {
	ledger *Ledger
	budget *Budget        // nil without one
	trims  func() Trimmed // constant once the reclaimer is there

	// aside is what was live on the heap at a collection besides what is in the ledger.
	aside atomic.Int64
}

// NewAccountant makes one that goes by a ledger, and a budget, which may be nil.
func NewAccountant(l *Ledger, b *Budget) *Accountant {
	return &Accountant{ledger: l, budget: b, trims: func() Trimmed { return Trimmed{} }}
}

// collected notes, soon after a collection, what is live that is not in the ledger. That
// does not change quickly, and so tells later what is garbage. If the ledger has fallen
// since some time before the collection, nobody knows how much of that was live; the
// larger one of what it was before and after it must be given. What a collection takes
// for live under load is partly garbage that was made while it ran, so then it can only
// show that there is less than was thought.
func (a *Accountant) collected(h Heap, ledger int64, load bool) {
	aside := max(int64(h.Live)-ledger, 0)
	if load {
		aside = min(aside, a.aside.Load())
	}
	a.aside.Store(aside)
}

// Account reads everything there is to read. It must not be called on a loop.
func (a *Accountant) Account() (Account, error) {
	resident, err := ReadResident()
	if err != nil {
		return Account{}, err
	}
	acc := Account{Resident: resident, Heap: Read(), C: ReadC(), Cgroup: ReadCgroup(), Holdings: a.ledger.Holdings(), Trimmed: a.trims()}
	acc.Lines = append(acc.tree(a.aside.Load()), a.budget.lines()...)
	return acc, nil
}

// tree explains the resident pages.
//
// On the heap, what is no holder's is garbage, but for what was live besides the ledger
// at the last collection, which nothing explains. Heap that was never touched is not
// resident: that is a line with negative bytes. Off the heap, what is resident is the
// C heap in use, then the runtime's own data up to what it says that it has, then what
// malloc keeps; of the latter two only a part is resident.
func (a *Account) tree(aside int64) []Line {
	h, r := a.Heap, a.Resident
	onHeap, inC := Sum(a.Holdings, OnHeap), Sum(a.Holdings, InC)
	others := int64(h.Objects) - onHeap
	garbage := min(max(others-aside, 0), max(others, 0))
	slack, idle, stacks := int64(h.Unused), int64(h.Free), int64(h.Stacks)
	untouched := min(r.Heap-(onHeap+others+slack+idle+stacks), 0)

	rest := r.Rest
	take := func(n int64) int64 {
		n = max(min(n, rest), 0)
		rest -= n
		return n
	}
	malloced := take(max(a.C.InUse, inC))
	metadata := take(int64(h.Metadata))
	kept := take(a.C.Free)
	ledger := onHeap + min(inC, malloced)

	lines := []Line{{Name: "rss", Doc: "resident pages of the process", Bytes: r.Total},
		{Name: "rss/ledger", Doc: "what pgebb keeps, by holder", Bytes: ledger}}
	for _, e := range a.Holdings {
		lines = append(lines, Line{"rss/ledger/" + e.Name, e.Doc, e.Bytes, e.Limit, e.Items})
	}
	parts := []Line{
		{Name: "rss/go", Doc: "the Go runtime besides what is in the ledger"},
		{Name: "rss/go/garbage", Doc: "objects that nobody uses and that are not collected yet", Bytes: garbage},
		{Name: "rss/go/span_slack", Doc: "room between objects, and for more of the same size", Bytes: slack},
		{Name: "rss/go/idle", Doc: "free heap that is not returned to the system yet", Bytes: idle},
		{Name: "rss/go/stacks", Doc: "stacks of goroutines", Bytes: stacks},
		{Name: "rss/go/untouched", Doc: "heap of the above that was never touched and so is not resident", Bytes: untouched},
		{Name: "rss/go/metadata", Doc: "what the runtime keeps of the heap and of itself", Bytes: metadata},
		{Name: "rss/c", Doc: "memory of C libraries besides what is in the ledger"},
		{Name: "rss/c/in_use", Doc: "given out by malloc", Bytes: malloced - min(inC, malloced)},
		{Name: "rss/c/free", Doc: "kept by malloc for later", Bytes: kept},
		{Name: "rss/program", Doc: "the program itself"},
		{Name: "rss/program/files", Doc: "pages of files: the program and libraries; the system can drop them", Bytes: r.File},
		{Name: "rss/program/variables", Doc: "variables of the program, and its first stack", Bytes: r.Static},
	}
	explained := ledger
	for i := range parts {
		for j := range parts {
			if parts[j].Parent() == parts[i].Name {
				parts[i].Bytes += parts[j].Bytes
			}
		}
		if parts[i].Parent() == "rss" {
			explained += parts[i].Bytes
		}
	}
	lines = append(lines, parts...)
	lines = append(lines, Line{Name: "rss/unaccounted", Doc: "what nothing of the above explains; negative if it explains too much", Bytes: r.Total - explained})
	return append(lines, a.besides()...)
}

// besides are readings that are no parts of the resident pages but about them.
func (a *Account) besides() []Line {
	return []Line{
		{Name: "anonymous", Doc: "resident pages that are of no file", Bytes: a.Resident.Anonymous()},
		{Name: "huge_pages", Doc: "resident pages that are transparent huge pages", Bytes: a.Resident.HugePages},
		{Name: "cgroup", Doc: "what the control group uses and may use, with other processes and cached files", Bytes: a.Cgroup.Usage, Limit: a.Cgroup.Limit},
		{
			Name: "reclaimed", Bytes: a.Trimmed.Won, Items: int64(a.Trimmed.Trims),
			Doc: fmt.Sprintf("given back to the system since the start, in so many times that took %.1f ms in all", a.Trimmed.Spent.Seconds()*1000),
		},
		{Name: "unmapped", Doc: "pages of files taken out of the process since the start, after loads that needed them; the system may still have them", Bytes: a.Trimmed.Unmapped},
	}
}
