package memory

import (
	"sync"
	"sync/atomic"
)

// Parts of the limit on the memory of the process, as divisors, that are given to what
// grows with what clients do.
const (
	registryPart = 4 // prepared statements of all clients, with their names
	transitPart  = 4 // bytes on their way, see Transit
	cachePart    = 8 // parsed statements
)

// From which part of the limit on, in percent of what the ledger has, what is done. The
// rest is for the program itself, and for what the collector needs to keep up.
const (
	cachesAt = 50
	waitAt   = 70
	refuseAt = 80

	// worthWaiting is the least part of what is given to bytes in transit, as a divisor,
	// that there must be of them for requests to wait because of everything else:
	// only what is in transit gets less while they do.
	worthWaiting = 8
)

// ReserveForStatements is the part of a limit for prepared statements; 0 of none. What is
// configured holds instead, up to half of the limit.
func ReserveForStatements(limit, configured int64) int64 {
	switch {
	case configured == 0:
		return limit / registryPart
	case limit == 0:
		return configured
	}
	return min(configured, limit/2)
}

// ReserveForCache is the part of a limit for parsed statements; 0 of none.
func ReserveForCache(limit int64) int64 { return limit / cachePart }

// Limit is the limit that is configured, or that of the control group, or 0 for none.
func Limit(configured int64) int64 {
	if configured > 0 {
		return configured
	}
	return ReadCgroup().Limit
}

// Pressure is what is done because there is little memory left.
type Pressure int32

const (
	CachesGive    Pressure = 1 << iota // what is only kept because it may be of use is dropped
	RequestsWait                       // clients that want something new are not read
	LoginsRefused                      // nobody new is let in
)

// Budget keeps the process within a limit. What is in transit is counted at each change, so
// that the answer is never late; everything else, which has limits of its own or grows
// slowly, as often as the reclaimer looks. It is safe for concurrent use, and so is a nil
// one, which is without a limit.
type Budget struct {
	limit    int64 // constant; 0 for none
	transit  atomic.Int64
	others   atomic.Int64 // what else the ledger has
	pressure atomic.Int32
	pressed  chan struct{} // one place: the pressure has risen

	mu     sync.Mutex
	caches []func()      // that give way; guarded by mu
	eased  []func()      // that are told when requests need wait no more; guarded by mu
	given  atomic.Uint64 // how often caches have given way
	waits  atomic.Uint64 // requests that have waited
	turned atomic.Uint64 // clients that were turned away
}

// NewBudget makes one with a limit in bytes; 0 is none.
func NewBudget(limit int64) *Budget {
	return &Budget{limit: limit, pressed: make(chan struct{}, 1)}
}

// Limit is the limit in bytes; 0 is none.
func (b *Budget) Limit() int64 {
	if b == nil {
		return 0
	}
	return b.limit
}

// Pressure is what must be done now. It costs one load.
func (b *Budget) Pressure() Pressure {
	if b == nil {
		return 0
	}
	return Pressure(b.pressure.Load())
}

// Transit adds to what is in transit: bytes that sockets have not taken, input that cannot
// be dealt with yet, and large messages that are read as a whole.
func (b *Budget) Transit(n int64) {
	if b != nil && b.limit > 0 && n != 0 {
		b.transit.Add(n)
		b.judge()
	}
}

// Room reports whether n bytes more in transit are within their part.
func (b *Budget) Room(n int64) bool {
	return b == nil || b.limit == 0 || b.transit.Load()+n <= b.limit/transitPart
}

// look takes over what the ledger has in all.
func (b *Budget) look(ledger int64) {
	if b == nil {
		return
	}
	b.others.Store(max(ledger-b.transit.Load(), 0))
	b.judge()
}

// judge sets the pressure, and tells who needs to know.
func (b *Budget) judge() {
	if b.limit == 0 {
		return
	}
	is := b.level(b.transit.Load(), b.others.Load())
	was := Pressure(b.pressure.Load())
	if is == was || !b.pressure.CompareAndSwap(int32(was), int32(is)) {
		return // or somebody else is judging, by figures as good as these
	}
	if is&^was != 0 {
		select {
		case b.pressed <- struct{}{}:
		default:
		}
	}
	if was&RequestsWait != 0 && is&RequestsWait == 0 {
		b.mu.Lock()
		defer b.mu.Unlock()
		for _, f := range b.eased {
			f()
		}
	}
}

func (b *Budget) level(transit, others int64) (p Pressure) {
	share := b.limit / transitPart
	at := func(percent int64) bool { return transit+others >= b.limit/100*percent }
	if at(cachesAt) || transit >= share-share/4 {
		p |= CachesGive
	}
	if transit >= share || at(waitAt) && transit >= share/worthWaiting {
		p |= RequestsWait
	}
	if at(refuseAt) || transit >= share+share/2 {
		p |= LoginsRefused
	}
	return p
}

// OnPressure has f called, in a goroutine of its own, when caches are to give way, and once
// a second for as long as they are.
func (b *Budget) OnPressure(f func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.caches = append(b.caches, f)
}

// OnEase has f called when requests need wait no more. It must return at once, and not
// come back to the budget.
func (b *Budget) OnEase(f func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.eased = append(b.eased, f)
}

// rises receives when the pressure has risen.
func (b *Budget) rises() <-chan struct{} {
	if b == nil {
		return nil
	}
	return b.pressed
}

// giveWay has caches give way if they must.
func (b *Budget) giveWay() {
	if b.Pressure()&CachesGive == 0 {
		return
	}
	b.mu.Lock()
	caches := b.caches
	b.mu.Unlock()
	for _, f := range caches {
		f()
	}
	b.given.Add(1)
}

// Waits counts a request that waits.
func (b *Budget) Waits() { b.waits.Add(1) }

// TurnedAway counts a client that is told that there is no memory for it.
func (b *Budget) TurnedAway() {
	if b != nil {
		b.turned.Add(1)
	}
}

// Spared is what the budget has had to do since the start.
type Spared struct {
	CachesGave, RequestsWaited, TurnedAway uint64
}

// Spared tells.
func (b *Budget) Spared() Spared {
	return Spared{b.given.Load(), b.waits.Load(), b.turned.Load()}
}

// lines are those of an account.
func (b *Budget) lines() []Line {
	if b == nil {
		return nil
	}
	s := b.Spared()
	if b.limit == 0 {
		return nil
	}
	share := b.limit / transitPart
	return []Line{
		{Name: "budget", Doc: "the ledger, and the limit of the process: memory.limit or that of the control group", Bytes: b.others.Load() + b.transit.Load(), Limit: b.limit},
		{Name: "budget/transit", Doc: "pending, client_input and client_parses, and their part of the limit", Bytes: b.transit.Load(), Limit: share},
		{Name: "budget/others", Doc: "everything else in the ledger", Bytes: b.others.Load()},
		{Name: "pressure", Doc: "the sum of 1: caches give way, 2: new requests wait, and 4: logins are refused; items: how often clients were turned away", Bytes: int64(b.Pressure()), Items: int64(s.TurnedAway)},
	}
}
