package admin

import (
	"context"
	"reflect"
	"strconv"
	"sync"
	"time"
)

// averages keep what the counters of the pools did in the last period.
type averages struct {
	mu     sync.Mutex
	before map[uint64]Counters // by pool, at the start of the current period; guarded by mu
	change map[uint64]Counters // in the last whole period; guarded by mu
	length time.Duration       // of that period; guarded by mu
}

// Run takes a sample each period until ctx ends. It is the package's only goroutine.
func (c *Console) Run(ctx context.Context) {
	last := time.Now()
	for {
		timer := time.NewTimer(max(c.src.StatsPeriod(), time.Second))
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case now := <-timer.C:
			c.averages.sample(c.src.Stats.Stats(), now.Sub(last))
			last = now
		}
	}
}

func (a *averages) sample(rows []StatsRow, length time.Duration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	now, change := make(map[uint64]Counters, len(rows)), make(map[uint64]Counters, len(rows))
	for _, r := range rows {
		now[r.ID] = r.Total
		change[r.ID] = r.Total.minus(a.before[r.ID])
	}
	a.before, a.change, a.length = now, change, length
}

// minus is what c has more of than b.
func (c Counters) minus(b Counters) Counters {
	x, y := reflect.ValueOf(&c).Elem(), reflect.ValueOf(b)
	for i := range y.NumField() {
		if f := x.Field(i); f.CanUint() {
			f.SetUint(f.Uint() - y.Field(i).Uint())
		} else {
			f.SetInt(f.Int() - y.Field(i).Int())
		}
	}
	return c
}

// plus adds counters up.
func (c Counters) plus(b Counters) Counters { return c.minus(Counters{}.minus(b)) }

// sum is what changed in the last period in some pools, and how long that was.
func (a *averages) sum(pools []uint64) (sum Counters, length time.Duration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, id := range pools {
		sum = sum.plus(a.change[id])
	}
	return sum, a.length
}

// counterRow is counters in the order of statsNames.
func counterRow(c Counters) []*string {
	return row(c.Transactions, 0, c.Queries, c.Assignments, c.Received, c.Sent, milliseconds(c.TransactionTime), milliseconds(c.IdleTransactionTime),
		milliseconds(c.QueryTime), milliseconds(c.WaitTime), c.Parses, c.Binds, c.Closes, c.Errors, c.Cleaned, c.Rollbacks, milliseconds(c.ConnectTime),
		c.Connects, c.Reads, c.Writes, c.AuthAttempts, c.RowsInserted, c.RowsUpdated, c.RowsDeleted)
}

// of returns the averages of a pool in the order of statsNames: counts per second,
// times per event.
func (a *averages) of(pool uint64) []*string {
	a.mu.Lock()
	defer a.mu.Unlock()
	d, seconds := a.change[pool], a.length.Seconds()
	rate := func(n uint64) *string { return ratio(float64(n), seconds) }
	per := func(t time.Duration, n uint64) *string { return ratio(float64(t)/1e6, float64(n)) }
	between := uint64(0)
	if d.Queries > d.Transactions {
		between = d.Queries - d.Transactions
	}
	return []*string{
		rate(d.Transactions), rate(0), rate(d.Queries), rate(d.Assignments), rate(d.Received), rate(d.Sent),
		per(d.TransactionTime, d.Transactions), per(d.IdleTransactionTime, between), per(d.QueryTime, d.Queries), per(d.WaitTime, d.Assignments),
		rate(d.Parses), rate(d.Binds), rate(d.Closes), rate(d.Errors), rate(d.Cleaned), rate(d.Rollbacks), per(d.ConnectTime, d.Connects),
		rate(d.Connects), ratio(float64(d.Reads), float64(d.Transactions)), ratio(float64(d.Writes), float64(d.Transactions)), rate(d.AuthAttempts),
		rate(d.RowsInserted), rate(d.RowsUpdated), rate(d.RowsDeleted),
	}
}

func ratio(a, b float64) *string {
	s := "0"
	if b > 0 && a > 0 {
		s = strconv.FormatFloat(a/b, 'f', 3, 64)
	}
	return &s
}
