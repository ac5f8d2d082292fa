package memory

import (
	"os"
	"runtime/debug"
)

const (
	// freeGarbage is how many bytes of garbage there may be at any time, and leastPercent
	// the least part of what is live that there may be. By default there may be as
	// much garbage as there is live, which is a lot where prepared statements take
	// hundreds of megabytes.
	freeGarbage  = 32 << 20
	leastPercent = 30

	// mostPercent is the runtime's default.
	mostPercent = 100

	// paceStep is by how much the percentage must change to be set: each time all
	// goroutines stop for a moment.
	paceStep = 5
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
	want := percentFor(h.Live)
	if max(want, p.percent)-min(want, p.percent) < paceStep {
		return
	}
	p.percent = want
	p.set(want)
}

func percentFor(live uint64) int {
	if live <= freeGarbage {
		return mostPercent
	}
	return max(int(freeGarbage*100/live), leastPercent)
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
