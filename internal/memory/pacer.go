package memory

import (
	"os"
	"runtime/debug"
)

const (
	// freeGarbage is how many bytes of garbage there may be at any time, and scanPercent
	// how much more, in percent of what a collection has to look through, which is what it
	// costs. By default there may be as much garbage as there is live, which is a lot
	// where prepared statements take hundreds of megabytes, and their texts cost nothing
	// to collect.
	freeGarbage = 32 << 20
	scanPercent = 30

	// leastPercent is the least part of what is live that there may be, because the
	// runtime needs some time to get ready.
	leastPercent = 5

	// mostPercent is the runtime's default.
	mostPercent = 100

	// paceStep is by what part of itself the percentage must change to be set: each time
	// all goroutines stop for a moment.
	paceStep = 8
)

// pacer has the runtime collect earlier when the heap is large. It is the reclaimer's.
type pacer struct {
	set     func(percent int)
	percent int
}

func newPacer() pacer {
	set := func(percent int) { debug.SetGCPercent(percent) }
	if os.Getenv("GOGC") != "" {
		set = func(int) {} // somebody knows better
	}
	return pacer{set, mostPercent}
}

// collected is called when a collection has ended.
func (p *pacer) collected(h Heap) {
	want := percentFor(h)
	if change := max(want, p.percent) - min(want, p.percent); change == 0 || change < p.percent/paceStep {
		return
	}
	p.percent = want
	p.set(want)
}

func percentFor(h Heap) int {
	if h.Live <= freeGarbage {
		return mostPercent
	}
	garbage := max(freeGarbage, h.Scannable*scanPercent/100)
	return min(max(int(garbage*100/h.Live), leastPercent), mostPercent)
}

// programPart is about what the program's code and variables take in bytes.
const programPart = 24 << 20

// LimitHeap has the runtime collect more often when all of its memory together comes near
// a limit on the process, less what the program itself takes; GOMEMLIMIT comes before it.
func LimitHeap(limit int64) {
	if os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(limit - min(programPart, limit/4))
	}
}
