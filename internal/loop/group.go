package loop

import (
	"sync"
	"sync/atomic"
	"time"
)

// Thresholds of [Group], as shares of a loop's time.
const (
	saturated = 0.75 // a loop that was this busy for settle gets a helper
	relaxed   = 0.50 // the last loop goes when the others could do all below this
	settle    = 2    // seconds in a row before anything changes
)

// Group is the loops of the process. New connections go to the loops in use,
// which is one until it is saturated: with two, each finds fewer events per
// wake-up, and both sleep and wake more often for the same work.
type Group struct {
	loops []*Loop      // constant
	used  atomic.Int32 // loops[:used] get new connections
	next  atomic.Uint32
	stop  chan struct{}
	wg    sync.WaitGroup
}

// NewGroup starts n loops, at least one. rebalance, which may be nil, is called
// in a goroutine of the group when a loop has come into use, to move
// connections from a busy loop to it, or is no longer to be used.
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

// watch owns used: it looks at how busy the loops were once a second.
func (g *Group) watch(rebalance func(from, to *Loop)) {
	ticker := time.NewTicker(time.Second)
	defer ticker.Stop()
	last := make([]int64, len(g.loops))
	share := make([]float64, len(g.loops))
	grow, shrink := 0, 0
	for before := time.Now(); ; {
		select {
		case <-g.stop:
			return
		case now := <-ticker.C:
			for i, l := range g.loops {
				busy := l.busy.Load()
				share[i] = float64(busy-last[i]) / float64(now.Sub(before))
				last[i] = busy
			}
			before = now
		}
		n := int(g.used.Load())
		grow, shrink = judge(share[:n], grow, shrink)
		switch {
		case grow >= settle && n < len(g.loops):
			g.used.Store(int32(n + 1))
			if rebalance != nil {
				rebalance(g.loops[busiest(share[:n])], g.loops[n])
			}
			grow = 0
		case shrink >= settle && n > 1:
			g.used.Store(int32(n - 1))
			if rebalance != nil {
				rebalance(g.loops[n-1], g.loops[0])
			}
			shrink = 0
		}
	}
}

// judge counts for how many seconds in a row a loop more would have helped, and
// one fewer would have done.
func judge(share []float64, grow, shrink int) (int, int) {
	var sum float64
	for _, s := range share {
		sum += s
	}
	if sum/float64(len(share)) >= saturated {
		grow++
	} else {
		grow = 0
	}
	if len(share) > 1 && sum < relaxed*float64(len(share)-1) {
		shrink++
	} else {
		shrink = 0
	}
	return grow, shrink
}

func busiest(share []float64) int {
	best := 0
	for i, s := range share {
		if s > share[best] {
			best = i
		}
	}
	return best
}
