//go:build !race

package cache_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/pgebb/pgebb/cache"
)

// TestTreesKeepNoPagesOfWhatIsDropped has trees come and go between texts that are as
// large, as those that wait to be parsed are, and holds the pages to what is said.
func TestTreesKeepNoPagesOfWhatIsDropped(t *testing.T) {
	pages := func() int64 { return int64(collected().HeapInuse) }
	for _, size := range []int{500, 6_000, 27_000} {
		const limit = 16 << 20
		before := pages()
		c := cache.NewTrees[told](cache.TreeLimits{Bytes: limit})
		for i := range 3 * limit / size {
			c.Put(strings.Repeat("k", size/4)+fmt.Sprint(i), told{}, 0, make([]byte, size+i%50))
		}
		grown := pages() - before
		if said := c.Stats().Bytes; grown > said*11/10 || said < limit*9/10 {
			t.Errorf("trees of %d bytes: said are %d bytes, pages of %d are in use", size, said, grown)
		}
		runtime.KeepAlive(c)
	}
}

// TestTreesStayWhatTheyAreWhateverIsDropped has some of all be used all the time, so that blocks are
// emptied around them.
func TestTreesStayWhatTheyAreWhateverIsDropped(t *testing.T) {
	c := cache.NewTrees[told](cache.TreeLimits{Entries: 2000})
	key := func(i int) []byte { return fmt.Appendf(nil, "%0*d", 10+i%200, i) }
	for i := range 50_000 {
		c.Put(string(key(i)), told{flags: uint32(i)}, 0, make([]byte, i%700))
		for k := 0; k < 1000 && i%50 == 0 && k < i; k += 10 {
			if v, ok := c.Get(key(k), 0); !ok || v.flags != uint32(k) {
				t.Fatalf("after %d, %d is %v, %v", i, k, v, ok)
			}
		}
	}
	if s := c.Stats(); s.Entries != 2000 || s.Bytes > 2000*(700+320) {
		t.Errorf("%+v", s)
	}
}
