package cache_test

import (
	"math/rand/v2"
	"testing"

	"github.com/pgebb/pgebb/cache"
)

type item struct {
	key  uint64
	link *item
}

func (i *item) Link() **item { return &i.link }

// Hash is the same for several, so that buckets have more than one.
func (i *item) Hash() uint64 { return i.key / 3 }

type items = cache.Table[item, *item]

func lookUp(t *items, key uint64) *item {
	for e := t.First(key / 3); e != nil; e = e.link {
		if e.key == key {
			return e
		}
	}
	return nil
}

// TestTheTableHoldsWhatAMapHolds compares it with one over random changes, at all sizes
// that it passes on the way up and down.
func TestTheTableHoldsWhatAMapHolds(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	var table items
	reference := map[uint64]*item{}
	change := func(insertions float64) {
		key := r.Uint64N(6000)
		switch e := lookUp(&table, key); {
		case e != reference[key]:
			t.Fatalf("%d is %v, want %v", key, e, reference[key])
		case e == nil && r.Float64() < insertions:
			e = &item{key: key}
			table.Insert(e)
			reference[key] = e
		case e != nil && r.Float64() > insertions:
			table.Remove(e)
			delete(reference, key)
		}
	}
	for _, insertions := range []float64{0.9, 0.1, 0.5, 0.02} {
		for range 40_000 {
			change(insertions)
			if table.Len() != len(reference) {
				t.Fatalf("it holds %d, want %d", table.Len(), len(reference))
			}
		}
	}
	seen := 0
	for e := range table.All() {
		if reference[e.key] != e {
			t.Errorf("it holds %d, which it should not", e.key)
		}
		seen++
	}
	if seen != len(reference) {
		t.Errorf("All gives %d elements, want %d", seen, len(reference))
	}
}

func TestTheTableIsAsLargeAsWhatItHoldsJustifies(t *testing.T) {
	var table items
	const n = 100_000
	all := make([]*item, n)
	for i := range all {
		all[i] = &item{key: uint64(3 * i)}
		want := table.Bytes() + table.Growth()
		if table.Insert(all[i]); table.Bytes() != want {
			t.Fatalf("element %d makes it %d bytes, and was said to make it %d", i, table.Bytes(), want)
		}
	}
	if perItem := table.Bytes() / n; perItem > 11 {
		t.Errorf("%d bytes for each element", perItem)
	}
	for i, e := range all[:n-100] {
		table.Remove(e)
		if most := int64(40*(n-i) + 4096); table.Bytes() > most {
			t.Fatalf("with %d elements left it takes %d bytes", table.Len(), table.Bytes())
		}
	}
	if table.Bytes() > 8000 {
		t.Errorf("with %d elements left it takes %d bytes", table.Len(), table.Bytes())
	}
	for _, e := range all[n-100:] {
		table.Remove(e)
	}
	if table.Bytes() != 0 {
		t.Errorf("empty it takes %d bytes", table.Bytes())
	}
}
