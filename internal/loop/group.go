package loop

import (
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// Thresholds of [Group], in cores' worth of processor time for each loop in use.
const (
	saturated = 0.85 // loops that take so much for settle seconds get another
	relaxed   = 0.70 // one goes when each of the others would take less
	settle    = 2    // seconds in a row before anything changes
)

// Group is the loops of the process. New connections go to the loops in use,
// which is one until it is saturated: with two, each finds fewer events per
// wake-up, and both sleep and wake more often for the same work.
//
// How busy loops are is told by the processor time of the process, nearly all of
// which is theirs. The time that a loop spends between two waits would not do: on a
// machine that is busy with something else most of it is spent waiting for a core,
// and a second loop would only wait as well.
type Group struct {
	loops []*Loop      // constant
	used  atomic.Int32 // loops[:used] get new connections
	next  atomic.Uint32
	stop  chan struct{}
	wg    sync.WaitGroup
}

// NewGroup starts n loops, at least one. rebalance, which may be nil, is called
// in a goroutine of the group when a loop has come into use, to move connections to
// it from one of the others, or is no longer to be used.
func NewGroup(n int, rebalance func(from, to *Loop)) (*Group, error) {
	g := &Group{stop: make(chan struct{})}
	for i := range max(n, 1) {
		l, err := New(i)
		if err != nil {
			g.Stop()
			return nil, err
		}
		g.loops = append(g.loops, l)
	}
	g.used.Store(1)
	if len(g.loops) > 1 {
		g.wg.Go(func() { g.watch(rebalance) })
	}
	return g, nil
}

// Loops returns all loops, used or not. The slice must not be changed.
func (g *Group) Loops() []*Loop { return g.loops }

// Used is how many of the loops new connections go to.
func (g *Group) Used() int { return int(g.used.Load()) }

// Batched is [Loop.Batched] of all loops.
func (g *Group) Batched() (n int64) {
	for _, l := range g.loops {
		n += l.Batched()
	}
	return n
}

// Pick returns the loop for a new connection.
func (g *Group) Pick() *Loop {
	return g.loops[g.next.Add(1)%uint32(g.used.Load())]
}

// Stop ends all loops; it returns when their goroutines have ended.
func (g *Group) Stop() {
	close(g.stop)
	g.wg.Wait()
	for _, l := range g.loops {
		l.Stop()
	}
}

// watch looks once a second at how much processor time was used, and is the only one
// to change g.used.
func (g *Group) watch(rebalance func(from, to *Loop)) {
	ticker := time.NewTicker(time.Second)
	defer ticker.Stop()
	var b balance
	before, spent := time.Now(), processorTime()
	for {
		select {
		case <-g.stop:
			return
		case now := <-ticker.C:
			used, total := int(g.used.Load()), processorTime()
			want := b.judge(used, float64(total-spent)/float64(now.Sub(before)))
			before, spent = now, total
			if want = min(want, len(g.loops)); want == used {
				continue
			}
			g.used.Store(int32(want))
			if rebalance == nil {
				continue
			}
			if want > used {
				rebalance(g.loops[int(g.next.Load())%used], g.loops[used])
			} else {
				rebalance(g.loops[used-1], g.loops[0])
			}
		}
	}
}

// balance counts for how many seconds in a row a loop more would have helped, and
// one fewer would have done.
type balance struct{ grow, shrink int }

// judge returns how many loops to use when used ones took so many cores.
func (b *balance) judge(used int, cores float64) int {
	if cores >= saturated*float64(used) {
		b.grow++
	} else {
		b.grow = 0
	}
	if used > 1 && cores < relaxed*float64(used-1) {
		b.shrink++
	} else {
		b.shrink = 0
	}
	switch {
	case b.grow >= settle:
		*b = balance{}
		return used + 1
	case b.shrink >= settle:
		*b = balance{}
		return used - 1
	}
	return used
}

// processorTime is what the process has used so far.
func processorTime() time.Duration {
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
