package backend

import "time"

// Bounds are the upper bounds of the buckets of a [Histogram]; behind the last is one for
// all that takes longer.
var Bounds = [...]time.Duration{
	100 * time.Microsecond, 250 * time.Microsecond, 500 * time.Microsecond,
	time.Millisecond, 2500 * time.Microsecond, 5 * time.Millisecond,
	10 * time.Millisecond, 25 * time.Millisecond, 50 * time.Millisecond,
	100 * time.Millisecond, 250 * time.Millisecond, 500 * time.Millisecond,
	time.Second, 2500 * time.Millisecond, 5 * time.Second,
	10 * time.Second, 30 * time.Second, time.Minute,
}

// Histogram counts how often something took how long. Like all counters it is written by
// one loop only.
type Histogram struct {
	Counts [len(Bounds) + 1]uint64 // by bucket
	Sum    uint64                  // of the times, in nanoseconds
}

// Observe counts one that took d. Most take little, so that few bounds are looked at.
func (h *Histogram) Observe(d time.Duration) {
	i := 0
	for i < len(Bounds) && d > Bounds[i] {
		i++
	}
	h.Counts[i]++
	h.Sum += uint64(max(d, 0))
}

// Count is how many there were.
func (h *Histogram) Count() (n uint64) {
	for _, c := range h.Counts {
		n += c
	}
	return n
}
