//go:build !race

// The race detector's own memory for every block is not given back.

package memory

import (
	"runtime/debug"
	"testing"
)

func TestReadingsAgreeWithAKnownAllocation(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	debug.FreeOSMemory()
	before := Read()
	rss, err := RSS()
	if err != nil {
		t.Fatal(err)
	}
	block := make([]byte, 32*mib)
	for i := range block {
		block[i] = 1
	}
	after := Read()
	if grown := after.Allocated - before.Allocated; grown < 32*mib {
		t.Errorf("%d bytes were allocated", grown)
	}
	if now, err := RSS(); err != nil || now-rss < 30*mib {
		t.Errorf("the resident set grew by %d bytes, %v", now-rss, err)
	}
	if block[len(block)-1] != 1 {
		t.Error("the block is gone")
	}
	block = nil
	if slack := Read().Slack(); slack < 31*mib {
		t.Errorf("a slack of %d bytes", slack)
	}
	debug.FreeOSMemory()
	if now, err := RSS(); err != nil || now-rss > 8*mib {
		t.Errorf("%d bytes were not given back, %v", now-rss, err)
	}
}
