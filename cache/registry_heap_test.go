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
	heap := func() int64 {
		runtime.GC()
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	for _, size := range []int{20, 200, 3000} {
		const n = 100_000
		r := cache.NewRegistry(1<<40, 0)
		text := make([]byte, size)
		all := make([]*cache.Statement, 0, n)
		before := heap()
		for i := range n {
			st, err := r.Intern(fmt.Appendf(text[:0], "%0*d", size, i), "")
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, st)
		}
		grown := heap() - before
		if ratio := float64(r.Bytes()) / float64(grown); ratio < 0.9 || ratio > 1.1 {
			t.Errorf("texts of %d bytes: %d bytes are reported, the heap grew by %d (%.2f)", size, r.Bytes(), grown, ratio)
		}
		rand.Shuffle(n, func(i, j int) { all[i], all[j] = all[j], all[i] })
		for _, st := range all {
			r.Release(st)
		}
		clear(all)
		if left := heap() - before; left > grown/50 || r.Bytes() != 0 {
			t.Errorf("texts of %d bytes: of %d bytes %d are left when all are released, %d are reported", size, grown, left, r.Bytes())
		}
		runtime.KeepAlive(r)
	}
}
