package cache_test

import (
	"fmt"
	"hash/maphash"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/pgebb/pgebb/cache"
)

// seed has all rounds make the same tables; constant.
var seed = maphash.MakeSeed()

// million is how many statements there are at the peak.
const million = 1_000_000

// BenchmarkAMillionStatements fills a registry and empties it again, and prints how long
// the longest of all calls took: a loop stands still for that long.
func BenchmarkAMillionStatements(b *testing.B) {
	const atOnce = 500
	prepare, leave := newSteps(b, "prepare"), newSteps(b, fmt.Sprintf("leave-of-%d", atOnce))
	runtime.LockOSThread() // whose time is read
	defer runtime.UnlockOSThread()
	for b.Loop() {
		r := cache.NewRegistryLike(seed)
		var names []*cache.Names
		text := make([]byte, 0, 256)
		for i := range million {
			if i%atOnce == 0 {
				names = append(names, r.NewNames())
			}
			text = statement(text, i)
			prepare.do(func() { define(b, r, names[len(names)-1], text, i) })
		}
		b.ReportMetric(float64(r.Bytes())/million, "bytes/statement")
		for _, n := range names {
			leave.do(n.Close)
		}
		prepare.report()
		leave.report()
	}
}

// BenchmarkASpikeThatFalls closes 99 of a hundred statements of a million of one client, in
// no order, so that tables shrink and texts are moved, and prints how long the longest of
// all calls took and how many texts one has moved at most.
func BenchmarkASpikeThatFalls(b *testing.B) {
	prepare, closed := newSteps(b, "prepare"), newSteps(b, "close")
	for b.Loop() {
		spike(b, prepare, closed)
	}
}

func spike(b *testing.B, prepare, closed *steps) {
	runtime.LockOSThread() // whose time is read
	defer runtime.UnlockOSThread()
	r := cache.NewRegistryLike(seed)
	names := r.NewNames()
	defer names.Close()
	text := make([]byte, 0, 256)
	for i := range million {
		text = statement(text, i)
		prepare.do(func() { define(b, r, names, text, i) })
	}
	var most, before uint64
	for _, i := range rand.New(rand.NewPCG(1, 2)).Perm(million)[million/100:] {
		name := fmt.Sprint("s", i)
		closed.do(func() { r.Release(names.Delete(name)) })
		now := r.TextsMoved()
		most, before = max(most, now-before), now
	}
	b.ReportMetric(float64(r.Bytes())/float64(r.Len()), "bytes/statement-left")
	b.ReportMetric(float64(most), "texts-moved/close-at-most")
	prepare.report()
	closed.report()
}

func statement(text []byte, i int) []byte {
	return fmt.Appendf(text[:0], "SELECT %d AS n, '%0180d' AS p", i, i)
}

func define(b *testing.B, r *cache.Registry, names *cache.Names, text []byte, i int) {
	st, err := r.Intern(text, "")
	if err != nil {
		b.Fatal(err)
	}
	names.Put(fmt.Sprint("s", i), st)
}

// steps are how long calls take, by the clock and of the processor's time. Rounds make the same
// calls in the same order, and of each call its shortest time counts: what else the machine
// does, and the collector, strike another one each time.
type steps struct {
	b         *testing.B
	name      string
	n         int             // calls of the round at hand
	wall, cpu []time.Duration // of each call, the shortest of all rounds
}

func newSteps(b *testing.B, name string) *steps { return &steps{b: b, name: name} }

func (s *steps) do(call func()) {
	cpu, start := threadTime(), time.Now()
	call()
	wall := time.Since(start)
	cpu = threadTime() - cpu
	if s.n == len(s.wall) {
		s.wall, s.cpu = append(s.wall, wall), append(s.cpu, cpu)
	}
	s.wall[s.n], s.cpu[s.n] = min(s.wall[s.n], wall), min(s.cpu[s.n], cpu)
	s.n++
}

// report ends a round.
func (s *steps) report() {
	s.n = 0
	sorted := slices.Sorted(slices.Values(s.wall))
	show := func(unit string, d time.Duration) { s.b.ReportMetric(float64(d.Nanoseconds())/1000, unit+s.name) }
	show("µs/longest-", sorted[len(sorted)-1])
	show("µs/99.9%-", sorted[len(sorted)*999/1000])
	show("cpu-µs/longest-", slices.Max(s.cpu))
}

// threadTime is the processor time of the thread so far.
func threadTime() time.Duration {
	var t unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &t)
	return time.Duration(t.Nano())
}
