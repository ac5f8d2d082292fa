package memory

import (
	"context"
	"runtime"
	"slices"
	"testing"
	"time"
)

const mib = 1 << 20

func TestATrimIsDueWhenTheLoadHasEasedAndItIsWorthIt(t *testing.T) {
	const threshold, interval = mib, 5 * time.Second
	slack := look{Heap: Heap{Free: 2 * mib}}
	busy := func(ledger int64, second uint64) look {
		return look{Heap: Heap{Free: 2 * mib, Allocated: 10 * mib * second}, ledger: ledger}
	}
	for name, c := range map[string]struct {
		rounds []look // one a second
		want   []bool
	}{
		"nothing to win": {[]look{{}, {}, {}}, []bool{false, false, false}},
		"free memory":    {[]look{slack, slack, slack}, []bool{false, true, false}},
		"garbage":        {[]look{{Heap: Heap{Objects: 3 * mib, Live: mib}}, {Heap: Heap{Objects: 3 * mib, Live: mib}}}, []bool{false, true}},
		"while it falls": {
			[]look{{Heap{Free: 90 * mib}, 100 * mib, 0}, {Heap{Free: 90 * mib}, 60 * mib, 0}, {Heap{Free: 90 * mib}, 20 * mib, 0}, {Heap{Free: 90 * mib}, 18 * mib, 0}}, []bool{false, false, false, true},
		},
		"what was live is not": {[]look{{Heap{Objects: 30 * mib, Live: 30 * mib, Cycles: 1}, 28 * mib, 2 * mib}, {Heap{Objects: 30 * mib, Live: 30 * mib, Cycles: 1}, 25 * mib, 2 * mib}}, []bool{false, true}},
		"under load":           {[]look{busy(0, 1), busy(0, 2), busy(0, 3)}, []bool{false, false, false}},
		"when the load eases":  {[]look{busy(0, 1), busy(0, 1), busy(0, 1)}, []bool{false, false, true}},
		"not twice in a row":   {[]look{slack, slack, slack, slack, slack, slack, slack}, []bool{false, true, false, false, false, false, true}},
		"a little is not much": {[]look{{Heap: Heap{Free: mib / 2}}, {Heap: Heap{Free: mib / 2}}, {Heap: Heap{Free: mib / 2}}}, []bool{false, false, false}},
		"little of a lot": {
			[]look{{Heap{Free: 2 * mib}, 100 * mib, 0}, {Heap{Free: 2 * mib}, 100 * mib, 0}, {Heap{Free: 7 * mib}, 100 * mib, 0}}, []bool{false, false, true},
		},
		"a great fall under load": {
			[]look{busy(20*mib, 1), busy(100*mib, 2), busy(60*mib, 3), busy(60*mib, 4), busy(60*mib, 5)}, []bool{false, false, false, true, false},
		},
	} {
		var w watch
		start := time.Now()
		for i, l := range c.rounds {
			now := start.Add(time.Duration(i) * time.Second)
			got := w.due(l, now, threshold, interval)
			if got != c.want[i] {
				t.Errorf("%s: in second %d due = %v", name, i, got)
			}
			if got {
				w.trimmed(l, now)
			}
		}
	}
}

func TestTheStartIsTrimmedAndRunEnds(t *testing.T) {
	trims := make(chan struct{}, 1)
	r := NewReclaimer(mib, time.Second, NewAccountant(&Ledger{}, nil))
	r.trim = func() { trims <- struct{}{} }
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { r.Run(ctx); close(done) }()
	<-trims
	cancel()
	<-done
}

func TestATrimIsCountedAndTimed(t *testing.T) {
	r := NewReclaimer(mib, time.Second, NewAccountant(&Ledger{}, nil))
	heap := Heap{Objects: 10 * mib, Free: 5 * mib}
	r.read = func() Heap { return heap }
	r.trim = func() {
		heap = Heap{Objects: 4 * mib}
		for start := time.Now(); time.Since(start) <= 0; { // the clock is to tick
		}
	}
	r.trimNow()
	if got := r.Trimmed(); got.Trims != 1 || got.Spent <= 0 || got.Won != 11*mib {
		t.Errorf("%+v", got)
	}
}

func TestCollectionsAreNoticed(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	collections := notifyCollections(ctx)
	for range 3 {
		runtime.GC()
		<-collections
	}
}

func TestLargeHeapsAreCollectedEarlier(t *testing.T) {
	var set []int
	p := pacer{func(percent int) { set = append(set, percent) }, mostPercent}
	for _, h := range []Heap{
		{Live: mib}, {Live: 30 * mib}, {Live: 33 * mib}, {Live: 64 * mib}, {Live: 65 * mib},
		{Live: 320 * mib, Scannable: 80 * mib},
		{Live: 1000 * mib, Scannable: 500 * mib}, {Live: 1001 * mib, Scannable: 501 * mib},
		{Live: 64 * mib, Scannable: 64 * mib},
		{Live: 10_000 * mib, Scannable: mib},
		{Live: mib},
	} {
		p.collected(h)
	}
	if want := []int{50, 10, 15, 50, 5, 100}; !slices.Equal(set, want) {
		t.Errorf("set to %v, want %v", set, want)
	}
}
