//go:build !race

// With the race detector an allocation takes more than it says, and much longer.

package cache_test

import (
	"fmt"
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
