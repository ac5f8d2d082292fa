package cache_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"testing"

	"github.com/pgebb/pgebb/cache"
)

func intern(t *testing.T, r *cache.Registry, body, plan string) *cache.Statement {
	t.Helper()
	st, err := r.Intern([]byte(body), plan)
	if err != nil {
		t.Fatal(err)
	}
	return st
}

func TestStatementsAreSharedByTextAndPlan(t *testing.T) {
	r := cache.NewRegistry(1<<20, 10)
	a := intern(t, r, "SELECT 1\x00\x00\x00", "")
	if b := intern(t, r, "SELECT 1\x00\x00\x00", ""); a != b {
		t.Error("the same statement is there twice")
	}
	for _, other := range []struct{ body, plan string }{{"SELECT 2\x00\x00\x00", ""}, {"SELECT 1\x00\x00\x01", ""}, {"SELECT 1\x00\x00\x00", "DateStyle"}} {
		if b := intern(t, r, other.body, other.plan); a == b || a.ID() == b.ID() {
			t.Errorf("%q with %q is taken for another", other.body, other.plan)
		}
	}
	if r.Len() != 4 {
		t.Errorf("%d statements, want 4", r.Len())
	}
}

func TestStatementsThatNobodyUsesAreKeptUpToTheLimit(t *testing.T) {
	r := cache.NewRegistry(1<<20, 1)
	a := intern(t, r, "a", "")
	id := a.ID()
	r.Release(a)
	if b := intern(t, r, "a", ""); b.ID() != id {
		t.Error("a statement that could have been kept has another name")
	}
	r.Release(a)
	for i := range 100 {
		r.Release(intern(t, r, fmt.Sprint(i), ""))
	}
	if r.Len() > 1 {
		t.Errorf("%d statements are kept", r.Len())
	}
	if r.Reset(); r.Len() != 0 || r.Bytes() != 0 {
		t.Errorf("%d statements and %d bytes are left", r.Len(), r.Bytes())
	}
}

func TestTheRegistryRefusesWhatItHasNoRoomFor(t *testing.T) {
	r := cache.NewRegistry(10_000, 1000)
	var all []*cache.Statement
	for i := 0; ; i++ {
		st, err := r.Intern(fmt.Appendf(nil, "SELECT %d", i), "")
		if errors.Is(err, cache.ErrRegistryFull) {
			break
		}
		if err != nil || i > 1000 {
			t.Fatalf("statement %d: %v", i, err)
		}
		all = append(all, st)
	}
	if r.Bytes() > r.Limit() {
		t.Errorf("%d bytes", r.Bytes())
	}
	if again := intern(t, r, all[0].Body(), ""); again != all[0] {
		t.Error("what is there cannot be used")
	}
}

func TestARenewedStatementHasANumberThatWasNeverUsed(t *testing.T) {
	r := cache.NewRegistry(1<<20, 0)
	st := intern(t, r, "a", "")
	old := st.ID()
	r.Renew(st)
	if st.ID() == old || intern(t, r, "b", "").ID() == st.ID() {
		t.Error("a number is used twice")
	}
}

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
