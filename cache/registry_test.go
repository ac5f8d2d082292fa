package cache_test

import (
	"errors"
	"fmt"
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
