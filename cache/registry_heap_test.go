//go:build !race

// With the race detector an allocation takes more than it says, and much longer.

package cache_test

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"testing"

	"github.com/pgebb/pgebb/cache"
)

// TestBytesAreWhatTheHeapGrowsBy holds the account to the heap, within 10 %, and what is
// left to nothing when everything is released.
func TestBytesAreWhatTheHeapGrowsBy(t *testing.T) {
	heap := func() int64 { return int64(collected().HeapAlloc) }
	for _, size := range []int{20, 200, 3000} {
		const n = 100_000
		r := cache.NewRegistry(1<<40, 0)
		names := r.NewNames()
		text := make([]byte, size)
		before := heap()
		for i := range n {
			st, err := r.Intern(fmt.Appendf(text[:0], "%0*d", size, i), "")
			if err != nil {
				t.Fatal(err)
			}
			names.Put(fmt.Sprint("s", i), st)
		}
		grown := heap() - before
		if ratio := float64(r.Bytes()) / float64(grown); ratio < 0.9 || ratio > 1.1 {
			t.Errorf("texts of %d bytes: %d bytes are reported, the heap grew by %d (%.2f)", size, r.Bytes(), grown, ratio)
		}
		names.Close()
		if left := heap() - before; left > grown/50 || r.Bytes() != 0 {
			t.Errorf("texts of %d bytes: of %d bytes %d are left when all are released, %d are reported", size, grown, left, r.Bytes())
		}
		runtime.KeepAlive(r)
	}
}

// TestWhatIsLeftOfASpikeHoldsLittleMore has one statement of a hundred survive, anywhere
// among the others. Of what goes, no more may stay than the places of statements, that
// others can point to.
func TestWhatIsLeftOfASpikeHoldsLittleMore(t *testing.T) {
	const n, survivors = 200_000, 2000
	pages := func() int64 { return int64(collected().HeapInuse) }
	r := cache.NewRegistry(1<<40, 0)
	before := pages()
	names := r.NewNames()
	fill := func(first, n int) {
		for i := first; i < first+n; i++ {
			names.Put(fmt.Sprint("s", i), intern(t, r, fmt.Sprintf("%0200d", i), ""))
		}
	}
	fill(0, survivors)
	few := r.Bytes()
	fill(survivors, n-survivors)
	peak := pages() - before
	for _, i := range rand.New(rand.NewPCG(1, 2)).Perm(n)[survivors:] {
		r.Release(names.Delete(fmt.Sprint("s", i)))
	}
	left := pages() - before
	if r.Len() != survivors || r.Bytes() > 2*few {
		t.Errorf("%d statements of %d bytes are left; as many took %d before the others came", r.Len(), r.Bytes(), few)
	}
	if most := 2*few + n*cache.StatementCost + 1<<20; left > most {
		t.Errorf("of %d bytes of pages %d are left, want at most %d", peak, left, most)
	}
	t.Logf("pages of %d bytes at the peak, %d left, the ledger says %d, before the spike %d", peak, left, r.Bytes(), few)
	runtime.KeepAlive(names)
}
