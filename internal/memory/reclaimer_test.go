package memory

import (
	"context"
	"testing"
	"time"
)

const mib = 1 << 20

func TestATrimIsDueWhenTheLoadHasEasedAndItIsWorthIt(t *testing.T) {
	const threshold, interval = mib, 5 * time.Second
	slack := Heap{Free: 2 * mib}
	for name, c := range map[string]struct {
		rounds []Heap // one a second
		want   []bool
	}{
		"nothing to win":       {[]Heap{{}, {}, {}}, []bool{false, false, false}},
		"free memory":          {[]Heap{slack, slack, slack}, []bool{false, true, false}},
		"garbage":              {[]Heap{{Objects: 3 * mib, Live: mib}, {Objects: 3 * mib, Live: mib}}, []bool{false, true}},
		"under load":           {[]Heap{{Free: 2 * mib, Allocated: 10 * mib}, {Free: 2 * mib, Allocated: 20 * mib}, {Free: 2 * mib, Allocated: 30 * mib}}, []bool{false, false, false}},
		"when the load eases":  {[]Heap{{Free: 2 * mib, Allocated: 10 * mib}, {Free: 2 * mib, Allocated: 10 * mib}, {Free: 2 * mib, Allocated: 10 * mib}}, []bool{false, false, true}},
		"not twice in a row":   {[]Heap{slack, slack, slack, slack, slack, slack, slack}, []bool{false, true, false, false, false, false, true}},
		"a little is not much": {[]Heap{{Free: mib / 2}, {Free: mib / 2}, {Free: mib / 2}}, []bool{false, false, false}},
	} {
		var w watch
		start := time.Now()
		for i, h := range c.rounds {
			now := start.Add(time.Duration(i) * time.Second)
			got := w.due(h, now, threshold, interval)
			if got != c.want[i] {
				t.Errorf("%s: in second %d due = %v", name, i, got)
			}
			if got {
				w.trimmed(h, now)
			}
		}
	}
}

func TestTheStartIsTrimmedAndRunEnds(t *testing.T) {
	trims := make(chan struct{}, 1)
	r := NewReclaimer(mib, time.Second)
	r.trim = func() { trims <- struct{}{} }
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { r.Run(ctx); close(done) }()
	<-trims
	cancel()
	<-done
}
