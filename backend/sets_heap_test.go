//go:build !race

// With the race detector an allocation takes more than it says.

package backend

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/pgebb/pgebb/internal/memory"
)

// TestASetCostsWhatIsCounted compares with the heap.
func TestASetCostsWhatIsCounted(t *testing.T) {
	heap := func() int64 {
		runtime.GC()
		runtime.GC()
		return int64(memory.Read().Objects)
	}
	const n = 20_000
	all := make([]Set, n)
	before, counted := heap(), SetsMemory().Bytes
	for i := range all {
		all[i] = MakeSet([]Param{{"application_name", fmt.Sprintf("client %0100d", i)}})
	}
	grown, reported := heap()-before, SetsMemory().Bytes-counted
	if ratio := float64(reported) / float64(grown); ratio < 0.9 || ratio > 1.1 {
		t.Errorf("%d bytes are reported, the heap grew by %d (%.2f)", reported, grown, ratio)
	}
	runtime.KeepAlive(all)
}
