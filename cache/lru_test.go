package cache_test

import (
	"fmt"
	"testing"

	"github.com/pgebb/pgebb/cache"
)

func textCost(k, v string) int64 { return int64(len(k)+len(v)) + cache.EntryOverhead }

func TestLRUForgetsTheLeastRecentlyUsedWhenOverTheLimit(t *testing.T) {
	c := cache.NewLRU(3*(cache.EntryOverhead+2), textCost)
	for _, k := range []string{"a", "b", "c"} {
		c.Put(k, k)
	}
	c.Get("a")
	c.Put("d", "d")
	if _, ok := c.Get("b"); ok {
		t.Error("b is kept, though it was used least recently")
	}
	for _, k := range []string{"a", "c", "d"} {
		if v, ok := c.Get(k); !ok || v != k {
			t.Errorf("Get(%q) = %q, %v", k, v, ok)
		}
	}
}

func TestLRUNeverHoldsMoreThanItsLimit(t *testing.T) {
	const limit = 10_000
	c := cache.NewLRU(limit, textCost)
	for i := range 1000 {
		c.Put(fmt.Sprint(i%300), string(make([]byte, i)))
		if c.Bytes() > limit {
			t.Fatalf("%d bytes are kept after %d puts", c.Bytes(), i)
		}
	}
	if c.Len() == 0 {
		t.Error("nothing is kept")
	}
}

func TestLRUReplacesAndRecounts(t *testing.T) {
	c := cache.NewLRU(10_000, textCost)
	c.Put("k", "short")
	c.Put("k", "much longer than before")
	if want := textCost("k", "much longer than before"); c.Bytes() != want || c.Len() != 1 {
		t.Errorf("%d bytes in %d entries, want %d in 1", c.Bytes(), c.Len(), want)
	}
}

func TestLRUDoesNotKeepWhatIsLargerThanItsLimit(t *testing.T) {
	c := cache.NewLRU(1000, textCost)
	c.Put("k", "v")
	c.Put("k", string(make([]byte, 2000)))
	if _, ok := c.Get("k"); ok || c.Bytes() != 0 {
		t.Errorf("kept %v, %d bytes", ok, c.Bytes())
	}
}
