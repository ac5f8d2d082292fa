package secrets

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/pgebb/pgebb/internal/memory"
)

// life is how long something lasts.
type life struct {
	renew time.Time // from when on it is fetched anew; zero for never
	until time.Time // when it ends; zero for never
}

// lasting is a life of a length, of which the last part is for fetching it anew.
func lasting(now time.Time, length, last time.Duration) life {
	if last >= length {
		last = length / 2
	}
	return life{renew: now.Add(length - last), until: now.Add(length)}
}

func (l life) length(now time.Time) time.Duration { return l.until.Sub(now).Round(time.Second) }

// patience is how long what could not be fetched anew is not tried again, as long as there is
// something that is good still.
const patience = 5 * time.Second

// store keeps what was fetched, by what it is for. It is safe for concurrent use.
type store[K comparable, V any] struct {
	limit int64 // in bytes; constant
	now   func() time.Time
	cost  func(K, V) int

	mu      sync.Mutex
	entries map[K]*entry[V] // guarded by mu, as all that follows
	bytes   int64
}

// entry is guarded by its store's mutex.
type entry[V any] struct {
	value V
	life  life
	known bool // there is a value
	bytes int64

	under *flight // the attempt to fetch it that is under way; nil if none is
}

// flight is one attempt to fetch something.
type flight struct {
	done chan struct{} // closed at its end
	err  error         // why it has failed; set before done is closed
}

// entryCost is about what an entry costs besides its key and value.
const entryCost = 200

func newStore[K comparable, V any](limit int64, now func() time.Time, cost func(K, V) int) *store[K, V] {
	return &store[K, V]{limit: limit, now: now, cost: cost, entries: make(map[K]*entry[V])}
}

// get returns what is there for a key. If it is time, one of those who ask fetches it anew;
// those who come meanwhile go on with what there is, if that is good still, or wait. stale is
// why it could not be fetched if what is returned is what was there before.
func (s *store[K, V]) get(ctx context.Context, key K, fetch func(context.Context) (V, life, error)) (v V, stale, err error) {
	for {
		s.mu.Lock()
		e := s.entries[key]
		if e == nil {
			e = &entry[V]{}
			s.entries[key] = e
		}
		now := s.now()
		good := e.known && (e.life.until.IsZero() || now.Before(e.life.until))
		fresh := good && (e.life.renew.IsZero() || now.Before(e.life.renew))
		if fresh || good && e.under != nil {
			defer s.mu.Unlock()
			return e.value, nil, nil
		}
		if e.under == nil {
			f := &flight{done: make(chan struct{})}
			e.under = f
			s.mu.Unlock()
			return s.fly(ctx, key, e, f, fetch)
		}
		f := e.under
		s.mu.Unlock()
		select {
		case <-f.done:
		case <-ctx.Done():
			return v, nil, ctx.Err()
		}
		// Who has fetched it may have had less time than is left to this one.
		if f.err != nil && !errors.Is(f.err, context.DeadlineExceeded) && !errors.Is(f.err, context.Canceled) {
			return v, nil, f.err
		}
	}
}

// fly fetches a value and ends the flight.
func (s *store[K, V]) fly(ctx context.Context, key K, e *entry[V], f *flight, fetch func(context.Context) (V, life, error)) (v V, stale, err error) {
	v, l, err := fetch(ctx)
	s.mu.Lock()
	defer s.mu.Unlock()
	defer close(f.done)
	f.err, e.under = err, nil
	now := s.now()
	switch {
	case err == nil:
		e.value, e.life, e.known = v, l, true
		s.put(key, e)
		return v, nil, nil
	case e.known && (e.life.until.IsZero() || now.Before(e.life.until)):
		e.life.renew = now.Add(patience)
		return e.value, err, nil
	}
	s.remove(key, e)
	return v, nil, err
}

// put counts an entry anew, and makes room for it if it must. mu is held.
func (s *store[K, V]) put(key K, e *entry[V]) {
	if s.entries[key] != e {
		return // it is not wanted any more; who has fetched it has it
	}
	s.bytes -= e.bytes
	e.bytes = memory.SizeOf(entryCost + s.cost(key, e.value))
	s.bytes += e.bytes
	for k, other := range s.entries {
		if s.bytes <= s.limit {
			return
		}
		if other != e && other.under == nil {
			s.remove(k, other)
		}
	}
}

func (s *store[K, V]) remove(key K, e *entry[V]) {
	if s.entries[key] == e {
		delete(s.entries, key)
		s.bytes -= e.bytes
	}
}

// drop forgets what there is for a key, if it is what is meant.
func (s *store[K, V]) drop(key K, meant func(V) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if e := s.entries[key]; e != nil && e.known && meant(e.value) {
		s.remove(key, e)
	}
}

func (s *store[K, V]) dropAll() { s.retain(func(K) bool { return false }) }

// retain forgets all but what is wanted.
func (s *store[K, V]) retain(wanted func(K) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for k, e := range s.entries {
		if !wanted(k) {
			s.remove(k, e)
		}
	}
}

func (s *store[K, V]) size() (bytes, items int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.bytes, int64(len(s.entries))
}
