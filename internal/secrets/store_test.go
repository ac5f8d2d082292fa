package secrets

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// shelf is a store of texts with a clock of its own.
type shelf struct {
	*store[string, string]
	at    time.Time
	calls atomic.Int64
}

func newShelf(limit int64) *shelf {
	s := &shelf{at: time.Unix(1000, 0)}
	s.store = newStore(limit, func() time.Time { return s.at }, func(k, v string) int { return len(k) + len(v) })
	return s
}

// fetch makes a function that fetches what lasts 10 s and is to be renewed after 6, or fails.
func (s *shelf) fetch(value string, err error) func(context.Context) (string, life, error) {
	return func(context.Context) (string, life, error) {
		s.calls.Add(1)
		return value, lasting(s.at, 10*time.Second, 4*time.Second), err
	}
}

func TestWhatIsKeptIsRenewedInTime(t *testing.T) {
	s, failure := newShelf(Limit), errors.New("no")
	for _, step := range []struct {
		name          string
		after         time.Duration
		fetched       string
		err           error
		want          string
		stale, failed bool
		calls         int64
	}{
		{"the first time", 0, "a", nil, "a", false, false, 1},
		{"while it is fresh", 5 * time.Second, "b", nil, "a", false, false, 1},
		{"when it is to be renewed", time.Second, "b", nil, "b", false, false, 2},
		{"when it cannot be renewed", 6 * time.Second, "", failure, "b", true, false, 3},
		{"a moment after that", time.Second, "", failure, "b", false, false, 3},
		{"when its time is up", 3 * time.Second, "", failure, "", false, true, 4},
		{"after that", 0, "c", nil, "c", false, false, 5},
	} {
		s.at = s.at.Add(step.after)
		got, stale, err := s.get(context.Background(), "k", s.fetch(step.fetched, step.err))
		if got != step.want || (stale != nil) != step.stale || (err != nil) != step.failed || s.calls.Load() != step.calls {
			t.Errorf("%s: %q, %v, %v after %d attempts", step.name, got, stale, err, s.calls.Load())
		}
	}
}

func TestOneFetchesForAll(t *testing.T) {
	for _, failure := range []error{nil, errors.New("no")} {
		synctest.Test(t, func(t *testing.T) {
			s := newShelf(Limit)
			release := make(chan struct{})
			slow := func(context.Context) (string, life, error) {
				s.calls.Add(1)
				<-release
				return "v", life{}, failure
			}
			for range 50 {
				go func() {
					if v, _, err := s.get(context.Background(), "k", slow); !errors.Is(err, failure) || err == nil && v != "v" {
						t.Errorf("%q, %v", v, err)
					}
				}()
			}
			synctest.Wait()
			// Who does not wait for long leaves, and the others get it all the same.
			ctx, cancel := context.WithCancel(context.Background())
			cancel()
			if _, _, err := s.get(ctx, "k", slow); !errors.Is(err, context.Canceled) {
				t.Errorf("who leaves is told %v", err)
			}
			close(release)
			synctest.Wait()
			if n := s.calls.Load(); n != 1 {
				t.Errorf("it was fetched %d times", n)
			}
		})
	}
}

// TestNobodyWaitsForARenewal has somebody ask while another one renews what is good still.
func TestNobodyWaitsForARenewal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShelf(Limit)
		if _, _, err := s.get(context.Background(), "k", s.fetch("old", nil)); err != nil {
			t.Fatal(err)
		}
		s.at = s.at.Add(7 * time.Second)
		release := make(chan struct{})
		go func() {
			if v, _, _ := s.get(context.Background(), "k", func(context.Context) (string, life, error) {
				<-release
				return "new", life{}, nil
			}); v != "new" {
				t.Errorf("who renews it gets %q", v)
			}
		}()
		synctest.Wait()
		if v, stale, err := s.get(context.Background(), "k", s.fetch("other", nil)); v != "old" || stale != nil || err != nil {
			t.Errorf("meanwhile it is %q, %v, %v", v, stale, err)
		}
		close(release)
		synctest.Wait()
		if v, _, _ := s.get(context.Background(), "k", s.fetch("other", nil)); v != "new" {
			t.Errorf("afterwards it is %q", v)
		}
	})
}

// TestWhoHasMoreTimeTriesAgain has the one who fetches run out of time.
func TestWhoHasMoreTimeTriesAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShelf(Limit)
		ctx, cancel := context.WithCancel(context.Background())
		go func() {
			if _, _, err := s.get(ctx, "k", func(ctx context.Context) (string, life, error) {
				<-ctx.Done()
				return "", life{}, ctx.Err()
			}); !errors.Is(err, context.Canceled) {
				t.Errorf("the first one is told %v", err)
			}
		}()
		synctest.Wait()
		go func() {
			if v, _, err := s.get(context.Background(), "k", s.fetch("v", nil)); v != "v" || err != nil {
				t.Errorf("the second one gets %q, %v", v, err)
			}
		}()
		synctest.Wait()
		cancel()
	})
}

func TestWhatIsKeptIsBounded(t *testing.T) {
	const each = 1000
	s := newShelf(10 * each)
	for _, name := range strings.Fields("a b c d e f g h i j k l m n o p q r s t u v w x y z") {
		if _, _, err := s.get(context.Background(), name, s.fetch(strings.Repeat(name, each), nil)); err != nil {
			t.Fatal(err)
		}
		if bytes, _ := s.size(); bytes > 10*each {
			t.Fatalf("with %s there are %d bytes", name, bytes)
		}
		before := s.calls.Load()
		if v, _, _ := s.get(context.Background(), name, s.fetch("", nil)); v != strings.Repeat(name, each) || s.calls.Load() != before {
			t.Errorf("%s, which was fetched last, is not there", name)
		}
	}
	if _, items := s.size(); items < 5 {
		t.Errorf("only %d are kept", items)
	}
	s.dropAll()
	if bytes, items := s.size(); bytes != 0 || items != 0 {
		t.Errorf("of nothing there are %d items with %d bytes", items, bytes)
	}
}

// TestWhatIsNotWantedAnyMoreDoesNotComeBack has something forgotten while it is fetched.
func TestWhatIsNotWantedAnyMoreDoesNotComeBack(t *testing.T) {
	s := newShelf(Limit)
	v, _, err := s.get(context.Background(), "k", func(context.Context) (string, life, error) {
		s.dropAll()
		return "v", life{}, nil
	})
	bytes, items := s.size()
	if v != "v" || err != nil || bytes != 0 || items != 0 {
		t.Errorf("%q, %v, and there are %d items with %d bytes", v, err, items, bytes)
	}
}
