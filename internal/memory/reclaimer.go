package memory

import (
	"context"
	"runtime/debug"
	"sync/atomic"
	"time"
)

const (
	// pace is how often the reclaimer looks.
	pace = time.Second

	// easedBelow is the rate of allocation, in bytes in a second, below which the
	// load counts as eased.
	easedBelow = 1 << 20

	// settleRounds is for how many looks in a row the load must have been low, so
	// that a pause between two bursts is not paid for.
	settleRounds = 2
)

// Reclaimer returns memory to the system. Run is its only goroutine.
type Reclaimer struct {
	threshold uint64        // bytes of slack that are worth a trim; constant
	interval  time.Duration // least time between two trims; constant
	trim      func()        // constant
	read      func() Heap   // constant

	trims atomic.Uint64
	spent atomic.Int64 // nanoseconds
}

// NewReclaimer makes a reclaimer that trims when at least threshold bytes can be
// won, at most once per interval.
func NewReclaimer(threshold uint64, interval time.Duration) *Reclaimer {
	return &Reclaimer{threshold: threshold, interval: interval, trim: debug.FreeOSMemory, read: Read}
}

// Trims is how many trims there were, and how long they took together.
func (r *Reclaimer) Trims() (uint64, time.Duration) {
	return r.trims.Load(), time.Duration(r.spent.Load())
}

// Run trims what the start of the process has left, then looks once a second until ctx
// ends.
func (r *Reclaimer) Run(ctx context.Context) {
	ticker := time.NewTicker(pace)
	defer ticker.Stop()
	r.trim()
	w := watch{before: r.read()}
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-ticker.C:
			if w.due(r.read(), now, r.threshold, r.interval) {
				r.trim()
				r.trims.Add(1)
				r.spent.Add(int64(time.Since(now)))
				w.trimmed(r.read(), now)
			}
		}
	}
}

// watch decides when a trim is due.
type watch struct {
	before Heap
	eased  int // rounds in a row with little allocation
	last   time.Time
}

// due looks at the account once per round.
func (w *watch) due(h Heap, now time.Time, threshold uint64, interval time.Duration) bool {
	if h.Allocated-w.before.Allocated < easedBelow {
		w.eased++
	} else {
		w.eased = 0
	}
	w.before = h
	return w.eased >= settleRounds && h.Slack() >= threshold && now.Sub(w.last) >= interval
}

func (w *watch) trimmed(h Heap, now time.Time) { w.before, w.last = h, now }
