package cache_test

import (
	"fmt"
	"testing"

	"github.com/pgebb/pgebb/cache"
)

func TestNamesStandForStatementsUntilTheyAreDropped(t *testing.T) {
	r := cache.NewRegistry(1<<20, 0)
	n := r.NewNames()
	a, b := intern(t, r, "a", ""), intern(t, r, "b", "")
	n.Put("first", a)
	n.Put("second", b)
	if n.Get([]byte("first")) != a || n.Get([]byte("second")) != b || n.Get([]byte("third")) != nil {
		t.Error("a name stands for something else")
	}
	if n.Delete("first") != a || n.Delete("first") != nil || n.Get([]byte("first")) != nil || n.Len() != 1 {
		t.Error("a name that was dropped is still there")
	}
	r.Release(a)
	n.Close()
	if r.Len() != 0 || r.Bytes() != 0 {
		t.Errorf("%d statements and %d bytes are left of names that are closed", r.Len(), r.Bytes())
	}
}

func TestNamesAreCountedByTheRegistry(t *testing.T) {
	r := cache.NewRegistry(1<<30, 0)
	n := r.NewNames()
	for i := range 3000 {
		n.Put(fmt.Sprint("statement ", i), intern(t, r, fmt.Sprint(i), ""))
		if i%3 == 0 {
			r.Release(n.Delete(fmt.Sprint("statement ", i/2)))
		}
		bytes, names := r.Named()
		if bytes != n.Bytes() || n.Bytes() != n.Recount() || int(names) != n.Len() {
			t.Fatalf("the registry counts %d names of %d bytes, they say %d of %d, a recount %d", names, bytes, n.Len(), n.Bytes(), n.Recount())
		}
		if err := r.Verify(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestNamesOfOneStatementAreWithinTheLimit has one statement prepared again and again.
func TestNamesOfOneStatementAreWithinTheLimit(t *testing.T) {
	const limit, atOnce = 1_000_000, 64 << 10
	r := cache.NewRegistry(limit, 10)
	n := r.NewNames()
	for i := 0; ; i++ {
		st, err := r.Intern([]byte("SELECT 1"), "")
		if err != nil {
			break
		}
		n.Put(fmt.Sprint(i), st)
		if i > limit/32 {
			t.Fatalf("%d names are taken", i)
		}
	}
	if r.Bytes() > limit+atOnce { // names come after the statement, many slots at a time
		t.Errorf("%d bytes", r.Bytes())
	}
}

func TestAFullRegistryMakesRoomInAllItsParts(t *testing.T) {
	r := cache.NewRegistry(60_000, 1_000_000)
	for i := range 3000 {
		r.Release(intern(t, r, fmt.Sprint("SELECT ", i), ""))
	}
	if r.Bytes() > 60_000 || r.Len() < 100 {
		t.Errorf("%d statements of %d bytes are kept", r.Len(), r.Bytes())
	}
}
