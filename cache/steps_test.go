package cache

import (
	"encoding/binary"
	"math/rand/v2"
	"slices"
	"testing"
)

// slotted is an element of slots.
type slotted struct {
	hash uint64
	next uint32
}

// looks is how many elements have been looked at.
var looks int

func (s *slotted) Hash() uint64  { looks++; return s.hash }
func (s *slotted) Link() *uint32 { return &s.next }

// TestNoChangeOfATableTakesLongHoweverManyThereAre has a table of a million grow and shrink,
// and bounds what any call gives up or takes of memory, and how many elements it looks at.
func TestNoChangeOfATableTakesLongHoweverManyThereAre(t *testing.T) {
	const n, mostBytes, mostLooks = 1_000_000, 64 << 10, 64
	var table slots[slotted, *slotted]
	r := rand.New(rand.NewPCG(1, 2))
	hashes := make([]uint64, n)
	step := func(what string, change func()) {
		before := table.bytes()
		looks = 0
		change()
		if d := table.bytes() - before; d > mostBytes || d < -mostBytes || looks > mostLooks {
			t.Fatalf("%s with %d elements has changed what the table takes by %d bytes and looked at %d", what, table.len(), d, looks)
		}
	}
	for i := range hashes {
		hashes[i] = r.Uint64()
		step("an insertion", func() { table.insert(slotted{hash: hashes[i]}) })
	}
	for _, i := range r.Perm(n) {
		e := table.first(hashes[i])
		for e.hash != hashes[i] {
			e = table.next(e)
		}
		step("a removal", func() { table.remove(e) })
	}
	if table.bytes() != 0 {
		t.Errorf("empty it takes %d bytes", table.bytes())
	}
}

// TestADroppedTextHasFewOthersMoved drops small texts in no order, so that block after
// block is emptied.
func TestADroppedTextHasFewOthersMoved(t *testing.T) {
	const n = 100_000
	var all texts
	places := make([]*record, n)
	body := func(i int) []byte { return binary.LittleEndian.AppendUint64(nil, uint64(i)) }
	for i := range places {
		places[i] = all.put(body(i), uint32(i))
	}
	var most uint64
	for _, i := range rand.New(rand.NewPCG(1, 2)).Perm(n) {
		before, room := all.moves, places[i].room()
		all.drop(places[i])
		places[i] = nil
		all.tidy(room, func(from, to *record) { places[to.hash] = to })
		most = max(most, all.moves-before)
		if waste := all.held - all.live - all.unfilled(); waste > all.held/2+leastWaste+largestBlock {
			t.Fatalf("of %d bytes %d are wasted", all.held, waste)
		}
	}
	if most == 0 || most > stepPart {
		t.Errorf("up to %d texts are moved at once, want at most %d", most, stepPart)
	}
	if all.moves > 2*n || all.held != 0 {
		t.Errorf("%d texts were moved for %d that were dropped, and %d bytes are left", all.moves, n, all.held)
	}
}

// TestALargeTextThatIsDroppedDoesNotHaveThousandsMoved has one go that is large, from among
// many that are small.
func TestALargeTextThatIsDroppedDoesNotHaveThousandsMoved(t *testing.T) {
	var all texts
	var large []*record
	for i := range 100_000 {
		if i%300 == 0 {
			large = append(large, all.put(make([]byte, ownBlock-100), uint32(i)))
		}
		all.put([]byte("12345678"), uint32(i))
	}
	for _, r := range large {
		before, room := all.moves, r.room()
		all.drop(r)
		all.tidy(room, func(from, to *record) {})
		if n := all.moves - before; n > stepTexts {
			t.Fatalf("%d texts are moved at once", n)
		}
	}
	if all.moves == 0 {
		t.Error("nothing was moved")
	}
}

// TestTheIdleQueueKeepsTheOrderAndMovesOne compares it with a slice over random changes.
func TestTheIdleQueueKeepsTheOrderAndMovesOne(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	var q idleQueue
	var want []*Statement
	for step := range 6000 {
		places := make([]uint32, len(want))
		for i, st := range want {
			places[i] = st.at
		}
		moved, before := 0, want
		switch {
		case len(want) == 0 || r.IntN(6000) > step:
			st := new(Statement)
			q.push(st)
			want = append(want, st)
		default:
			i := 0
			if r.IntN(2) == 0 {
				i = r.IntN(len(want))
			}
			st := want[i]
			q.remove(st)
			before, places = slices.Delete(slices.Clone(want), i, i+1), slices.Delete(places, i, i+1)
			want = before
		}
		for i, at := range places {
			if before[i].at != at {
				moved++
			}
		}
		if moved > 1 {
			t.Fatalf("step %d moves %d statements", step, moved)
		}
		if len(want) > 0 && q.oldest() != want[0] || q.n != len(want) {
			t.Fatalf("step %d: %d statements, want %d", step, q.n, len(want))
		}
	}
	for _, st := range want {
		if q.oldest() != st {
			t.Fatal("the order is another one")
		}
		q.remove(st)
	}
	if q.oldest() != nil || q.bytes() > 1024 {
		t.Errorf("%d bytes are left", q.bytes())
	}
}

// TestALowerLimitIsReachedInSteps holds that nobody who releases a statement has to drop
// all those that are too many by then.
func TestALowerLimitIsReachedInSteps(t *testing.T) {
	r := NewRegistry(1<<40, 1<<40)
	const n = 20_000
	intern := func(i int) *Statement {
		st, err := r.Intern(binary.LittleEndian.AppendUint64(nil, uint64(i)), "")
		if err != nil {
			t.Fatal(err)
		}
		return st
	}
	for i := range n {
		r.Release(intern(i))
	}
	r.SetLimits(1<<40, 10)
	for i := range n {
		before := r.Len()
		if r.Release(intern(n + i)); before-r.Len() > dropsAtOnce {
			t.Fatalf("%d statements are dropped at once", before-r.Len())
		}
	}
	if r.Len() > 10 {
		t.Errorf("%d statements are left", r.Len())
	}
	if err := r.Verify(); err != nil {
		t.Error(err)
	}
}
