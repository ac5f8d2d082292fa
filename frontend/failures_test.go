package frontend

import (
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"testing"
	"time"
)

func TestWhoFailsWaitsToBeTold(t *testing.T) {
	f := newFrontend(t, "", io.Discard)
	cfg := authConfigFor(t, "plain")
	f.auth = NewAuthenticator(cfg, nil)
	t.Cleanup(f.auth.working.Wait)
	var waited []time.Duration
	f.failures.rested = func(_ context.Context, d time.Duration) error { waited = append(waited, d); return nil }
	for _, c := range []struct {
		user, password string
		waits          bool
	}{
		{"one", "sesame street", false}, {"one", "wrong", true}, {"nobody", "wrong", true}, {"none", "wrong", true},
	} {
		waited = nil
		ours, theirs := net.Pipe()
		p := &prompt{Conn: theirs, user: c.user, password: c.password}
		done := make(chan error, 1)
		go func() { done <- p.answer() }()
		err := f.authenticate(ours, &startup{User: c.user, Database: "d"}, cfg)
		ours.Close()
		<-done
		if (err != nil) != c.waits || (len(waited) == 1) != c.waits || c.waits && waited[0] != cfg.General.FailedLoginDelay {
			t.Errorf("%s with %q: %v, and waits for %v", c.user, c.password, err, waited)
		}
	}
	if len(f.failures.slots) != 0 {
		t.Errorf("%d places are kept", len(f.failures.slots))
	}
}

func TestGuessesOfOneUserFromOneAddressAreBounded(t *testing.T) {
	f := newFailures()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	enter := func(ctx context.Context, g guesser) func() {
		t.Helper()
		leave, err := f.enter(ctx, g)
		if err != nil {
			t.Fatal(err)
		}
		return leave
	}
	ann := guesser{"10.0.0.1", "ann"}
	var leaves []func()
	for range maxGuesses {
		leaves = append(leaves, enter(ctx, ann))
	}
	enter(ctx, guesser{"10.0.0.1", "bob"})()
	enter(ctx, guesser{"10.0.0.2", "ann"})()
	over, stop := context.WithCancel(ctx)
	stop()
	if _, err := f.enter(over, ann); !errors.Is(err, context.Canceled) {
		t.Errorf("one more: %v", err)
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		if leave, err := f.enter(ctx, ann); err == nil {
			leave()
		} else {
			t.Error(err)
		}
	})
	leaves[0]()
	wg.Wait()
	for _, leave := range leaves[1:] {
		leave()
	}
	if len(f.slots) != 0 {
		t.Errorf("%d places are kept", len(f.slots))
	}
}

func TestARestEndsWithTheLogin(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := rest(ctx, time.Hour); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if err := rest(context.Background(), 0); err != nil {
		t.Error(err)
	}
}
