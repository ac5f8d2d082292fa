package cache_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"

	"github.com/pgebb/pgebb/cache"
)

// TestTextsStayWhatTheyAreWhateverIsDropped has statements of all sizes come and go in no
// order, so that blocks are emptied and texts moved all the time.
func TestTextsStayWhatTheyAreWhateverIsDropped(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	r := cache.NewRegistry(1<<40, 50)
	held := map[*cache.Statement]string{}
	for _, most := range []int{3000, 30, 5000, 0} {
		for range 20_000 {
			if len(held) < most || most > 0 && rnd.IntN(3) == 0 {
				body := fmt.Sprint(rnd.IntN(8000))
				body += strings.Repeat(body, rnd.IntN(40)*rnd.IntN(60))
				st := intern(t, r, body, "")
				if _, ok := held[st]; ok {
					r.Release(st) // one use of each is enough
				}
				held[st] = body
				continue
			}
			for st, body := range held {
				if st.Body() != body {
					t.Fatalf("%.20q… has become %.20q…", body, st.Body())
				}
				delete(held, st)
				r.Release(st)
				break
			}
		}
		if err := r.Verify(); err != nil {
			t.Fatal(err)
		}
		for st, body := range held {
			if again := intern(t, r, body, ""); again != st {
				t.Fatalf("%.20q… is not found", body)
			}
			r.Release(st)
		}
	}
	if r.Reset(); r.Len() != 0 || r.Bytes() != 0 {
		t.Errorf("%d statements and %d bytes are left", r.Len(), r.Bytes())
	}
}

// TestATextCanBeReadWhileItIsMoved is for the race detector, too.
func TestATextCanBeReadWhileItIsMoved(t *testing.T) {
	r := cache.NewRegistry(1<<40, 0)
	const n = 20_000
	var kept, others []*cache.Statement
	for i := range n {
		st := intern(t, r, fmt.Sprintf("%0200d", i), "")
		if i%100 == 0 {
			kept = append(kept, st)
		} else {
			others = append(others, st)
		}
	}
	was := r.Bytes()
	done := make(chan struct{})
	var readers sync.WaitGroup
	readers.Go(func() {
		for {
			for i, st := range kept {
				if want := fmt.Sprintf("%0200d", 100*i); st.Body() != want || string(st.Text()) != want {
					t.Errorf("statement %d has become %q", i, st.Body())
				}
			}
			select {
			case <-done:
				return
			default:
			}
		}
	})
	for _, st := range others {
		r.Release(st)
	}
	close(done)
	readers.Wait()
	if r.Bytes() > was/20 {
		t.Errorf("one statement of a hundred is left, but %d of %d bytes", r.Bytes(), was)
	}
}

// TestStatementsThatAreKeptCanBeUsedAgainWhenTheirTextsHaveMoved keeps a few that nobody
// uses when the rest goes.
func TestStatementsThatAreKeptCanBeUsedAgainWhenTheirTextsHaveMoved(t *testing.T) {
	const n, kept = 20_000, 300
	r := cache.NewRegistry(1<<40, kept)
	ids := map[string]uint64{}
	var all []*cache.Statement
	for i := range n {
		st := intern(t, r, fmt.Sprintf("%0200d", i), "")
		all = append(all, st)
		ids[st.Body()] = st.ID()
	}
	for _, i := range rand.New(rand.NewPCG(1, 2)).Perm(n) {
		r.Release(all[i])
	}
	if err := r.Verify(); err != nil {
		t.Fatal(err)
	}
	was, found := r.Len(), 0
	var infos []cache.Info
	r.Each(func(i cache.Info) { infos = append(infos, i) })
	for _, i := range infos {
		if st := intern(t, r, i.Text, ""); st.ID() == ids[i.Text] && st.Body() == i.Text {
			found++
		}
	}
	if was != kept || found != kept || r.Len() != kept {
		t.Errorf("of %d statements that were kept %d are found, and then there are %d", was, found, r.Len())
	}
	if err := r.Verify(); err != nil {
		t.Fatal(err)
	}
}
