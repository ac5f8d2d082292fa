package memory

import (
	"context"
	"runtime"
	"runtime/debug"
	"sync/atomic"
	"time"
)

const (
	// pace is how often the reclaimer looks.
	pace = time.Second

	// noticed is the least time between two looks at what collections have left.
	noticed = 100 * time.Millisecond

	// easedBelow is the rate of allocation, in bytes in a second, below which the
	// load counts as eased.
	easedBelow = 1 << 20

	// settleRounds is for how many looks in a row the load must have been low, so
	// that a pause between two bursts is not paid for.
	settleRounds = 2

	// worthPart is what part of what is held a trim must win at least: it takes as long as
	// there is much to look at.
	worthPart = 16

	// fallingBy is by how many bytes the ledger must have fallen in a round for it to be
	// still falling.
	fallingBy = 4 << 20

	// greatFall is by how many bytes, and by what part of its high point, the ledger must
	// have fallen for a trim under load: then a collection costs little, and the
	// next one that the runtime makes by itself may be far away.
	greatFall     = 16 << 20
	greatFallPart = 4
)

// Reclaimer returns memory to the system. Run is its only goroutine.
type Reclaimer struct {
	threshold  uint64        // bytes that are worth a trim; constant
	interval   time.Duration // least time between two trims; constant
	accountant *Accountant   // constant
	trim       func()        // constant
	unmap      func() int64  // constant
	read       func() Heap   // constant
	pacer      pacer         // of Run

	trims    atomic.Uint64
	spent    atomic.Int64 // nanoseconds
	won      atomic.Int64 // bytes
	unmapped atomic.Int64 // bytes
}

// NewReclaimer makes a reclaimer that trims when at least threshold bytes can be
// won, at most once per interval. It tells the accountant what collections leave.
func NewReclaimer(threshold uint64, interval time.Duration, a *Accountant) *Reclaimer {
	r := &Reclaimer{threshold: threshold, interval: interval, accountant: a, trim: trim, unmap: unmap, read: Read, pacer: newPacer()}
	a.trims = r.Trimmed
	return r
}

func trim() {
	debug.FreeOSMemory()
	trimMalloc()
}

// unmap goes without where it is not possible: the pages are the system's to take anyway.
func unmap() int64 {
	n, _ := unmapFiles()
	return n
}

// Trimmed is what the trims so far were.
type Trimmed struct {
	Trims    uint64
	Spent    time.Duration // by all of them together
	Won      int64         // bytes that the runtime has given back
	Unmapped int64         // bytes of files, with a trim or by themselves
}

// Trimmed tells. Any goroutine may ask.
func (r *Reclaimer) Trimmed() Trimmed {
	return Trimmed{r.trims.Load(), time.Duration(r.spent.Load()), r.won.Load(), r.unmapped.Load()}
}

// Run trims what the start of the process has left, at once and when it is quiet for the
// first time, then looks once a second, and after collections, until ctx ends.
func (r *Reclaimer) Run(ctx context.Context) {
	ticker := time.NewTicker(pace)
	defer ticker.Stop()
	collections := notifyCollections(ctx)
	r.trim()
	last := r.next(look{}, false)
	pressed := r.accountant.budget.rises()
	w := watch{before: last.Heap, loaded: true} // with the start
	var lately time.Time
	fresh := true
	for {
		select {
		case <-ctx.Done():
			return
		case <-pressed:
			r.accountant.budget.giveWay()
		case <-collections:
			if now := time.Now(); now.Sub(lately) >= noticed {
				lately = now
				last = r.next(last, w.eased == 0)
			}
		case now := <-ticker.C:
			last = r.next(last, w.eased == 0)
			r.accountant.budget.giveWay()
			due := w.due(last, now, r.threshold, r.interval)
			if due || fresh && w.eased >= settleRounds {
				fresh = false
				r.trimNow()
				last = r.next(last, w.eased == 0)
				w.trimmed(last, time.Now())
			}
			if w.outdated(now, r.interval) {
				r.unmapped.Add(r.unmap())
				w.unmapped(now)
			}
		}
	}
}

// next looks again, and acts on a collection since the last look.
func (r *Reclaimer) next(last look, load bool) look {
	l := r.look()
	if l.Cycles != last.Cycles {
		r.accountant.collected(l.Heap, max(l.ledger, last.ledger), load)
		r.pacer.collected(l.Heap)
		l.aside = r.accountant.aside.Load()
	}
	return l
}

func (r *Reclaimer) trimNow() {
	start, before := time.Now(), r.read()
	r.trim()
	r.spent.Add(int64(time.Since(start)))
	r.trims.Add(1)
	after := r.read()
	r.won.Add(max(int64(before.Objects+before.Unused+before.Free)-int64(after.Objects+after.Unused+after.Free), 0))
}

// look is what the reclaimer goes by.
type look struct {
	Heap
	ledger int64 // what holders have on the heap
	aside  int64 // what was live besides that
}

func (r *Reclaimer) look() look {
	all := r.accountant.ledger.Holdings()
	onHeap := Sum(all, OnHeap)
	r.accountant.budget.look(onHeap + Sum(all, InC))
	return look{r.read(), onHeap, r.accountant.aside.Load()}
}

// winnable is what a trim would return, about: free spans, and what is on the heap and
// is nobody's.
func (l look) winnable() uint64 {
	n := int64(l.Slack())
	if l.Cycles > 0 {
		n = max(n, int64(l.Free)+int64(l.Objects)-l.ledger-l.aside)
	}
	return uint64(max(n, 0))
}

// watch decides when a trim is due.
type watch struct {
	before Heap
	ledger int64 // at that time
	eased  int   // rounds in a row with little allocation
	high   int64 // of the ledger since the last trim
	last   time.Time

	loaded bool      // there was a load since files were unmapped
	mapped time.Time // when that was
}

// due looks at the account once per round.
func (w *watch) due(l look, now time.Time, threshold uint64, interval time.Duration) bool {
	if l.Allocated-w.before.Allocated < easedBelow {
		w.eased++
	} else {
		w.eased, w.loaded = 0, true
	}
	falling := w.ledger-l.ledger > fallingBy // more of it will be won in a moment
	w.before, w.ledger = l.Heap, l.ledger
	w.high = max(w.high, l.ledger)
	if now.Sub(w.last) < interval || falling {
		return false
	}
	fall := w.high - l.ledger
	worth := max(threshold, uint64(max(l.ledger+l.aside, 0))/worthPart)
	return w.eased >= settleRounds && l.winnable() >= worth || fall >= greatFall && fall >= w.high/greatFallPart
}

func (w *watch) trimmed(l look, now time.Time) {
	w.before, w.ledger, w.high, w.last = l.Heap, l.ledger, l.ledger, now
}

// outdated tells if there may be pages of files that only a load needed that has eased.
func (w *watch) outdated(now time.Time, interval time.Duration) bool {
	return w.loaded && w.eased >= settleRounds && now.Sub(w.mapped) >= interval
}

func (w *watch) unmapped(now time.Time) { w.loaded, w.mapped = false, now }

// notifyCollections sends after each collection, unless what was sent before is not
// received yet, until ctx ends.
func notifyCollections(ctx context.Context) <-chan struct{} {
	ch := make(chan struct{}, 1)
	var arm func()
	arm = func() {
		// An object that nobody uses is found by the next collection.
		runtime.AddCleanup(new([32]byte), func(ch chan<- struct{}) {
			if ctx.Err() != nil {
				return
			}
			select {
			case ch <- struct{}{}:
			default:
			}
			arm()
		}, ch)
	}
	arm()
	return ch
}
