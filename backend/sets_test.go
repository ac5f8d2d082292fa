package backend

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/pgebb/pgebb/internal/memory"
)

// TestSetsThatNobodyUsesAreForgotten waits for what the runtime tells after a collection.
func TestSetsThatNobodyUsesAreForgotten(t *testing.T) {
	before := forgotten(0) // other tests have left some
	useSets(t, before)
	if h := forgotten(before.Items); h.Items > before.Items || h.Bytes > before.Bytes {
		t.Errorf("%+v is left of sets that nobody uses, before it was %+v", h, before)
	}
}

// useSets makes sets and uses them until it returns.
//
//go:noinline
func useSets(t *testing.T, before memory.Holding) {
	all := make([]Set, 2000)
	for i := range all {
		all[i] = MakeSet([]Param{{"application_name", fmt.Sprint("client ", i)}})
	}
	if MakeSet([]Param{{"application_name", "client 7"}}) != all[7] {
		t.Error("the same set is there twice")
	}
	if h := SetsMemory(); h.Items-before.Items != 2000 || h.Bytes <= before.Bytes {
		t.Errorf("%d sets of %d bytes are counted", h.Items-before.Items, h.Bytes-before.Bytes)
	}
	if err := VerifySets(); err != nil {
		t.Error(err)
	}
	runtime.KeepAlive(all)
}

// forgotten waits until no more sets than that are left, and returns those that are.
func forgotten(items int64) memory.Holding {
	for range 1000 {
		runtime.GC()
		if SetsMemory().Items <= items {
			break
		}
		runtime.Gosched()
	}
	return SetsMemory()
}
