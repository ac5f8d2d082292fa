package cache_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/pgebb/pgebb/cache"
)

type told struct {
	flags uint32
}

func put(c *cache.Trees[told], key string, size int) {
	c.Put(key, told{flags: 1}, 0, make([]byte, size))
}

func has(c *cache.Trees[told], key string) bool {
	for _, e := range c.Entries() {
		if e.Text == key {
			return true
		}
	}
	return false
}

func TestTreesAreBoundedInEntries(t *testing.T) {
	c := cache.NewTrees[told](cache.TreeLimits{Entries: 2})
	for _, k := range []string{"a", "b"} {
		put(c, k, 10)
	}
	c.Get([]byte("a"), 0)
	put(c, "c", 10)
	if has(c, "b") || !has(c, "a") || !has(c, "c") {
		t.Errorf("%+v", c.Entries())
	}
}

func TestTreesAreBoundedInBytes(t *testing.T) {
	const limit = 100_000
	c := cache.NewTrees[told](cache.TreeLimits{Bytes: limit})
	for i := range 1000 {
		put(c, fmt.Sprint(i%300), 10*i)
		if n := c.Stats().Bytes; n > limit {
			t.Fatalf("%d bytes after %d puts", n, i)
		}
	}
	put(c, "large", 2*limit)
	if has(c, "large") || c.Stats().Entries == 0 {
		t.Error("what is larger than the limit has pushed out the rest")
	}
	c.SetLimits(cache.TreeLimits{Bytes: limit / 10})
	if n := c.Stats().Bytes; n > limit/10 {
		t.Errorf("%d bytes with a lower limit", n)
	}
}

func TestTreesThatNobodyAsksForGoThoughOthersAreUsed(t *testing.T) {
	c := cache.NewTrees[told](cache.TreeLimits{Idle: time.Minute})
	for i := range 1000 {
		put(c, fmt.Sprint("heavy", i), 1000)
	}
	for i := range 10 {
		put(c, fmt.Sprint("light", i), 10)
	}
	for s := range 90 {
		c.Sweep(time.Duration(s) * time.Second)
		for i := range 10 {
			if _, ok := c.Get(fmt.Append(nil, "light", i), 0); !ok {
				t.Fatalf("a tree in use is gone after %d s", s)
			}
		}
	}
	if s := c.Stats(); s.Entries != 10 {
		t.Errorf("%d are left", s.Entries)
	}
}

func TestResetForgetsTreesAndFigures(t *testing.T) {
	c := cache.NewTrees[told](cache.TreeLimits{})
	put(c, "a", 10)
	c.Get([]byte("a"), 4)
	c.Get([]byte("b"), 0)
	if s := c.Stats(); s.Hits != 5 || s.Misses != 1 || s.Entries != 1 {
		t.Errorf("%+v", s)
	}
	c.Reset()
	if s := c.Stats(); s != (cache.TreeStats{}) {
		t.Errorf("%+v", s)
	}
}

func heap() int64 { return int64(collected().HeapAlloc) }

// collected is the state of the heap when nothing is left in it that nobody uses.
func collected() (m runtime.MemStats) {
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&m)
	return m
}

// What a cache says that it takes is within a tenth of what the heap grows by, and what it
// drops is gone.
func TestTheBytesOfTreesAreThoseOfTheHeap(t *testing.T) {
	for _, size := range []int{0, 100, 1000, 27_000} {
		for _, n := range []int{1000, 5000, 9000, 14_000, 20_000} {
			if n*size > 200<<20 {
				continue
			}
			before := heap()
			c := cache.NewTrees[told](cache.TreeLimits{Idle: time.Second})
			for i := range n {
				put(c, fmt.Sprint(strings.Repeat("k", i%200), i), size+i%100)
			}
			grown, said := heap()-before, c.Stats().Bytes
			if said < grown*9/10 || said > grown*11/10 {
				t.Errorf("%d trees of %d bytes: said are %d bytes, the heap grew by %d (%.3f)", n, size, said, grown, float64(said)/float64(grown))
			}
			c.Sweep(time.Hour)
			if left := heap() - before; left > 100_000 {
				t.Errorf("%d bytes are left of %d", left, grown)
			}
			runtime.KeepAlive(c)
		}
	}
}
