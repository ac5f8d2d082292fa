package memory

import (
	"context"
	"testing"
	"time"
)

func TestPressureRisesStepByStep(t *testing.T) {
	for name, c := range map[string]struct {
		transit, others int64
		want            Pressure
	}{
		"nothing":                       {0, 0, 0},
		"less than half":                {10, 38, 0},
		"half of it":                    {10, 42, CachesGive},
		"seven tenths":                  {10, 62, CachesGive | RequestsWait},
		"seven tenths that will stay":   {1, 71, CachesGive},
		"four fifths":                   {10, 71, CachesGive | RequestsWait | LoginsRefused},
		"four fifths that will stay":    {1, 80, CachesGive | LoginsRefused},
		"three quarters of the transit": {19, 0, CachesGive},
		"all of the transit":            {25, 0, CachesGive | RequestsWait},
		"far too much in transit":       {38, 0, CachesGive | RequestsWait | LoginsRefused},
	} {
		c.transit, c.others = c.transit*mib, c.others*mib
		b := NewBudget(100 * mib)
		b.Transit(c.transit)
		b.look(c.transit + c.others)
		if got := b.Pressure(); got != c.want {
			t.Errorf("%s: pressure %d, want %d", name, got, c.want)
		}
		if b.Transit(-c.transit); c.others == 0 && b.Pressure() != 0 {
			t.Errorf("%s: pressure %d is left of nothing", name, b.Pressure())
		}
	}
}

func TestWithoutALimitThereIsNoPressure(t *testing.T) {
	var none *Budget
	none.Transit(1 << 50)
	b := NewBudget(0)
	b.Transit(1 << 50)
	if none.Pressure() != 0 || b.Pressure() != 0 || !none.Room(1<<50) || !b.Room(1<<50) {
		t.Error("there is pressure without a limit")
	}
}

func TestWhoWaitsIsToldOnce(t *testing.T) {
	b := NewBudget(100 * mib)
	told := 0
	b.OnEase(func() { told++ })
	b.Transit(30 * mib)
	b.Transit(10 * mib)
	if told != 0 {
		t.Error("it is told under pressure")
	}
	b.Transit(-11 * mib)
	b.Transit(-11 * mib)
	b.Transit(-11 * mib)
	if told != 1 {
		t.Errorf("it is told %d times", told)
	}
}

func TestCachesGiveWayUnderPressureAtOnce(t *testing.T) {
	var l Ledger
	held := int64(60 * mib)
	l.Register(Holder{Memory: func() []Holding { return []Holding{{Name: "cache", Bytes: held}} }})
	b := NewBudget(100 * mib)
	gave := make(chan struct{}, 10)
	b.OnPressure(func() { gave <- struct{}{} })
	r := NewReclaimer(mib, time.Hour, NewAccountant(&l, b))
	r.trim = func() {}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { r.Run(ctx); close(done) }()
	<-gave
	cancel()
	<-done
	if b.Spared().CachesGave == 0 {
		t.Error("it is not counted")
	}
}
