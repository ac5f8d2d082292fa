package cache_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/pgebb/pgebb/cache"
)

// BenchmarkAMillionStatements fills a registry and empties it again, and prints how long
// the longest of all calls took: a loop stands still for that long.
func BenchmarkAMillionStatements(b *testing.B) {
	const n, atOnce = 1_000_000, 500
	for b.Loop() {
		r := cache.NewRegistry(1<<40, 0)
		var names []*cache.Names
		var prepare, leave []time.Duration
		text := make([]byte, 0, 256)
		for i := range n {
			if i%atOnce == 0 {
				names = append(names, r.NewNames())
			}
			text = fmt.Appendf(text[:0], "SELECT %d AS n, '%0180d' AS p", i, i)
			start := time.Now()
			st, err := r.Intern(text, "")
			if err != nil {
				b.Fatal(err)
			}
			names[len(names)-1].Put(fmt.Sprint("s", i), st)
			prepare = append(prepare, time.Since(start))
		}
		held := r.Bytes()
		for _, n := range names {
			start := time.Now()
			n.Close()
			leave = append(leave, time.Since(start))
		}
		b.ReportMetric(float64(held)/n, "bytes/statement")
		report(b, "prepare", prepare)
		report(b, fmt.Sprintf("leave-of-%d", atOnce), leave)
	}
}

// BenchmarkASpikeThatFalls closes 99 of a hundred statements of a million, in no order, so
// that texts are moved, and prints how long the longest of all calls took.
func BenchmarkASpikeThatFalls(b *testing.B) {
	const n = 1_000_000
	for b.Loop() {
		r := cache.NewRegistry(1<<40, 0)
		names := r.NewNames()
		text := make([]byte, 0, 256)
		for i := range n {
			text = fmt.Appendf(text[:0], "SELECT %d AS n, '%0180d' AS p", i, i)
			st, err := r.Intern(text, "")
			if err != nil {
				b.Fatal(err)
			}
			names.Put(fmt.Sprint("s", i), st)
		}
		var closed []time.Duration
		for _, i := range rand.Perm(n)[n/100:] {
			name := fmt.Sprint("s", i)
			start := time.Now()
			r.Release(names.Delete(name))
			closed = append(closed, time.Since(start))
		}
		b.ReportMetric(float64(r.Bytes())/float64(r.Len()), "bytes/statement-left")
		report(b, "close", closed)
		names.Close()
	}
}

// report prints the longest of all times, and the longest but for one in a thousand: on a
// machine that does something else, too, the longest says more of that.
func report(b *testing.B, name string, all []time.Duration) {
	slices.Sort(all)
	b.ReportMetric(float64(all[len(all)-1].Microseconds()), "µs/longest-"+name)
	b.ReportMetric(float64(all[len(all)*999/1000].Nanoseconds())/1000, "µs/99.9%-"+name)
}
