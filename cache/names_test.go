package cache_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
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

// TestNamesAreWhatAMapHolds compares them with one over random changes, at all sizes that
// they pass on the way up and down.
func TestNamesAreWhatAMapHolds(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	r := cache.NewRegistry(1<<30, 0)
	n := r.NewNames()
	empty := n.Bytes()
	a, b := intern(t, r, "a", ""), intern(t, r, "b", "")
	reference := map[string]*cache.Statement{}
	for _, puts := range []float64{0.9, 0.1, 0.5, 0.02, 0} {
		for range 40_000 {
			key := rnd.IntN(8000)
			text := fmt.Sprint(strings.Repeat("n", key%70), key)
			switch st := n.Get([]byte(text)); {
			case st != reference[text]:
				t.Fatalf("%q is %p, want %p", text, st, reference[text])
			case st == nil && rnd.Float64() < puts:
				st = []*cache.Statement{a, b}[key%2]
				n.Put(text, st)
				reference[text] = st
			case st != nil && rnd.Float64() > puts:
				if n.Delete(text) != st {
					t.Fatalf("%q stood for something else", text)
				}
				delete(reference, text)
			}
		}
		bytes, _ := r.Named()
		if n.Len() != len(reference) || n.Bytes() != n.Recount() || bytes != n.Bytes() {
			t.Fatalf("%d names of %d bytes, want %d of %d, the registry says %d", n.Len(), n.Bytes(), len(reference), n.Recount(), bytes)
		}
		if most := int64(400 * (n.Len() + 10)); n.Bytes() > most {
			t.Errorf("%d names take %d bytes", n.Len(), n.Bytes())
		}
	}
	for text, st := range reference {
		if n.Delete(text) != st {
			t.Fatalf("%q stood for something else", text)
		}
	}
	if n.Bytes() != empty {
		t.Errorf("no names take %d bytes", n.Bytes())
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
	const block = 1 << 10 // to which texts are being moved when the last statement is released
	r := cache.NewRegistry(60_000, 1_000_000)
	for i := range 3000 {
		r.Release(intern(t, r, fmt.Sprint("SELECT ", i), ""))
	}
	if r.Bytes() > 60_000+block || r.Len() < 100 {
		t.Errorf("%d statements of %d bytes are kept", r.Len(), r.Bytes())
	}
}
