package memory

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
)

// Place is where memory comes from.
type Place uint8

const (
	OnHeap Place = iota // Go's heap
	InC                 // malloc
)

// Holding is what one of the long-lived things of the program holds at a moment.
type Holding struct {
	Name  string // in words_with_underscores; unique
	Doc   string // what it is, in a few words
	Bytes int64  // allocated for it, in size classes of the allocator
	Limit int64  // the most that Bytes may be; 0 if nothing but others' limits bounds it
	Items int64  // how many there are
	Place Place
}

// Holder tells what it holds when it is asked.
type Holder struct {
	// Memory returns the same holdings each time. It must cost no more than a few
	// additions for each loop, pool and server, and not be called on a loop.
	Memory func() []Holding
	// Verify counts anew what sums say that are kept up to date from change to
	// change. It may take long; nil if there are none.
	Verify func() error
}

// Ledger is all holders. It is safe for concurrent use.
type Ledger struct {
	mu      sync.Mutex
	holders []Holder // guarded by mu
}

// Register adds a holder for good.
func (l *Ledger) Register(h Holder) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.holders = append(l.holders, h)
}

func (l *Ledger) all() []Holder {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.holders)
}

// Holdings are what everybody holds now, by name. They are not one instant: loops are
// asked one after the other. It must not be called on a loop.
func (l *Ledger) Holdings() []Holding {
	var all []Holding
	for _, h := range l.all() {
		all = append(all, h.Memory()...)
	}
	slices.SortFunc(all, func(a, b Holding) int { return strings.Compare(a.Name, b.Name) })
	return all
}

// Verify has every holder count anew, and says whose sums are wrong. It must not be called
// on a loop.
func (l *Ledger) Verify() error {
	var errs []error
	seen := map[string]bool{}
	for _, h := range l.Holdings() {
		if h.Bytes < 0 || h.Items < 0 {
			errs = append(errs, fmt.Errorf("%s: %d bytes in %d items", h.Name, h.Bytes, h.Items))
		}
		if seen[h.Name] {
			errs = append(errs, fmt.Errorf("%s: two holders have this name", h.Name))
		}
		seen[h.Name] = true
	}
	for _, h := range l.all() {
		if h.Verify != nil {
			errs = append(errs, h.Verify())
		}
	}
	return errors.Join(errs...)
}

// Sum is the bytes of all holdings that come from a place.
func Sum(all []Holding, from Place) int64 {
	var sum int64
	for _, h := range all {
		if h.Place == from {
			sum += h.Bytes
		}
	}
	return sum
}
