//go:build !race

// The race detector's own memory for every block is not given back.

package memory

import (
	"runtime"
	"runtime/debug"
	"testing"
)

func resident(t *testing.T) Resident {
	t.Helper()
	r, err := ReadResident()
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestReadingsAgreeWithAKnownAllocation(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	debug.FreeOSMemory()
	before, pages := Read(), resident(t)
	block := make([]byte, 32*mib)
	for i := range block {
		block[i] = 1
	}
	after := Read()
	if grown := after.Allocated - before.Allocated; grown < 32*mib {
		t.Errorf("%d bytes were allocated", grown)
	}
	if r := resident(t); r.Heap-pages.Heap < 30*mib || r.Total-pages.Total < 30*mib {
		t.Errorf("the resident set grew by %d bytes, the heap in it by %d", r.Total-pages.Total, r.Heap-pages.Heap)
	}
	if block[len(block)-1] != 1 {
		t.Error("the block is gone")
	}
	block = nil
	if slack := Read().Slack(); slack < 31*mib {
		t.Errorf("a slack of %d bytes", slack)
	}
	debug.FreeOSMemory()
	if r := resident(t); r.Heap-pages.Heap > 8*mib {
		t.Errorf("%d bytes were not given back", r.Heap-pages.Heap)
	}
}

// TestTheHeapIsFoundAmongTheMappings goes by what the runtime says of it.
func TestTheHeapIsFoundAmongTheMappings(t *testing.T) {
	h, r := Read(), resident(t)
	most := int64(h.Objects + h.Unused + h.Free + h.Stacks)
	if r.Heap > most || r.Heap < most/4 {
		t.Errorf("%d bytes of the heap are resident, the runtime has %d", r.Heap, most)
	}
	if r.File <= 0 || r.Static <= 0 || r.Rest <= 0 {
		t.Errorf("something is not found: %+v", r)
	}
}

func TestUnderLoadOnlyLessIsTakenForLive(t *testing.T) {
	a := NewAccountant(&Ledger{}, nil)
	for i, c := range []struct {
		live uint64
		load bool
		want int64
	}{{5 * mib, false, 4 * mib}, {30 * mib, true, 4 * mib}, {3 * mib, true, 2 * mib}, {30 * mib, false, 29 * mib}} {
		if a.collected(Heap{Live: c.live}, mib, c.load); a.aside.Load() != c.want {
			t.Errorf("%d: %d bytes, want %d", i, a.aside.Load(), c.want)
		}
	}
}

func TestAnAccountExplainsTheResidentPages(t *testing.T) {
	var l Ledger
	held := make([]byte, 16*mib)
	for i := range held {
		held[i] = 1
	}
	l.Register(Holder{Memory: func() []Holding { return []Holding{{Name: "block", Bytes: int64(len(held))}} }})
	a := NewAccountant(&l, nil)
	runtime.GC()
	a.collected(Read(), Sum(l.Holdings(), OnHeap), false)
	garbage := make([]byte, 24*mib)
	for i := range garbage {
		garbage[i] = 1
	}
	if garbage[7] != 1 {
		t.Error("the block is gone")
	}
	acc, err := a.Account()
	if err != nil {
		t.Fatal(err)
	}
	sums := map[string]int64{}
	for _, line := range acc.Lines {
		sums[line.Parent()] += line.Bytes
	}
	for _, line := range acc.Lines {
		if parts, ok := sums[line.Name]; ok && parts != line.Bytes {
			t.Errorf("the parts of %s sum up to %d bytes, it has %d", line.Name, parts, line.Bytes)
		}
	}
	if got := acc.Bytes("rss/ledger/block"); got != int64(len(held)) {
		t.Errorf("the block in the ledger has %d bytes", got)
	}
	if got := acc.Bytes("rss/go/garbage"); got < 23*mib || got > 26*mib {
		t.Errorf("%d bytes of garbage, want about %d", got, len(garbage))
	}
	if u := acc.Unaccounted(); u > 4*mib || u < -4*mib {
		t.Errorf("%d bytes are not accounted for:\n%+v", u, acc.Lines)
	}
}
