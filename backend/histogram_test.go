package backend

import (
	"testing"
	"time"
)

func TestABucketHoldsWhatTakesUpToItsBound(t *testing.T) {
	var h Histogram
	for _, bound := range Bounds {
		h.Observe(bound)
	}
	h.Observe(-1)
	h.Observe(Bounds[0] + 1)
	h.Observe(time.Hour)
	var want Histogram
	want.Sum = uint64(time.Hour + Bounds[0] + 1)
	for i, bound := range Bounds {
		want.Counts[i] = 1
		want.Sum += uint64(bound)
	}
	want.Counts[0], want.Counts[1], want.Counts[len(Bounds)] = 2, 2, 1
	if h != want {
		t.Errorf("the buckets are %v, want %v", h, want)
	}
	if n := h.Count(); n != uint64(len(Bounds))+3 {
		t.Errorf("there are %d", n)
	}
}

func TestCountersAddUp(t *testing.T) {
	a, b := Counters{Transactions: 1}, Counters{Transactions: 2, Evictions: 3}
	a.WaitTimes.Observe(Bounds[1])
	b.WaitTimes.Observe(Bounds[1])
	b.WaitTimes.Observe(Bounds[0])
	a.Add(&b)
	want := Counters{Transactions: 3, Evictions: 3}
	for _, d := range []time.Duration{Bounds[0], Bounds[1], Bounds[1]} {
		want.WaitTimes.Observe(d)
	}
	if a != want {
		t.Errorf("the sum is %+v, want %+v", a, want)
	}
}

// BenchmarkObserve is what a transaction pays three times: for its wait, its queries and
// itself.
func BenchmarkObserve(b *testing.B) {
	var h Histogram
	for b.Loop() {
		h.Observe(40 * time.Microsecond)
	}
}
