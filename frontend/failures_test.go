package frontend

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/pgebb/pgebb/config"
	"github.com/pgebb/pgebb/internal/loop"
	"github.com/pgebb/pgebb/internal/scram"
)

func TestWhoFailsWaitsToBeTold(t *testing.T) {
	f := newFrontend(t, "", io.Discard)
	cfg := authConfigFor(t, "plain")
	f.cfg.Store(cfg)
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
		err := f.authenticate(ours, &startup{User: c.user, Database: "d"}, loop.Now())
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

// logIn starts a login, whose result comes when it is over.
func (f *Frontend) logIn(t *testing.T, user, password string) (*prompt, <-chan error) {
	t.Helper()
	ours, theirs := net.Pipe()
	done := make(chan error, 1)
	go func() {
		defer ours.Close()
		done <- f.authenticate(ours, &startup{User: user, Database: "d"}, loop.Now())
	}()
	t.Cleanup(func() { theirs.Close() })
	return &prompt{Conn: theirs, user: user, password: password}, done
}

// TestWhoDoesNotAnswerHoldsNobodyUp: however many logins of a user from an address are open, a
// right password is judged at once.
func TestWhoDoesNotAnswerHoldsNobodyUp(t *testing.T) {
	for _, c := range []struct {
		authType string
		answers  int // of the client, before it falls silent
	}{{"scram", 0}, {"scram", 1}, {"md5", 0}, {"plain", 0}} {
		t.Run(fmt.Sprintf("%s-%d", c.authType, c.answers), func(t *testing.T) {
			f := newFrontend(t, "", io.Discard)
			cfg := authConfigFor(t, c.authType)
			cfg.General.ClientLoginTimeout = 10 * time.Second
			f.cfg.Store(cfg)
			f.auth = NewAuthenticator(cfg, nil)
			t.Cleanup(f.auth.working.Wait)
			for range maxGuesses {
				p, _ := f.logIn(t, "one", "sesame street")
				_, _, err := p.next()
				for range c.answers {
					if err == nil {
						err = p.say(initialResponse(scram.Mechanism, scram.NewClient(p.password).First()))
					}
					if err == nil {
						_, _, err = p.next()
					}
				}
				if err != nil {
					t.Fatal(err)
				}
			}
			p, done := f.logIn(t, "one", "sesame street")
			go func() { _ = p.answer() }() // ends with the login, which tells more
			if err := <-done; err != nil {
				t.Errorf("the right password behind %d that are not there: %v", maxGuesses, err)
			}
		})
	}
}

// TestAnswersAreJudgedAFewAtATime: where as many as may are waiting to be told that they are
// wrong, not even a right one is let in, or guessing would be free.
func TestAnswersAreJudgedAFewAtATime(t *testing.T) {
	for _, authType := range []string{"scram", "md5", "plain"} {
		t.Run(authType, func(t *testing.T) {
			f := newFrontend(t, "", io.Discard)
			cfg := authConfigFor(t, authType)
			cfg.General.ClientLoginTimeout = config.Off
			f.cfg.Store(cfg)
			f.auth = NewAuthenticator(cfg, nil)
			t.Cleanup(f.auth.working.Wait)
			resting, told := make(chan struct{}), make(chan struct{})
			f.failures.rested = func(context.Context, time.Duration) error {
				resting <- struct{}{}
				<-told
				return nil
			}
			try := func(user, password string) <-chan error {
				p, done := f.logIn(t, user, password)
				go func() { _ = p.answer() }() // ends with the login, which tells more
				return done
			}
			var wrong []<-chan error
			for range maxGuesses {
				wrong = append(wrong, try("one", "wrong"))
				<-resting
			}
			hasty := *cfg
			hasty.General.ClientLoginTimeout = time.Millisecond
			f.cfg.Store(&hasty)
			if err := <-try("one", "sesame street"); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("one more is judged: %v", err)
			}
			f.cfg.Store(cfg)
			if err := <-try("two", "old"); err != nil {
				t.Errorf("another user: %v", err)
			}
			close(told)
			for _, done := range wrong {
				if err := <-done; sqlstate(err) != "28P01" {
					t.Errorf("a wrong password: %v", err)
				}
			}
			if err := <-try("one", "sesame street"); err != nil {
				t.Errorf("the right password behind them: %v", err)
			}
			if len(f.failures.slots) != 0 {
				t.Errorf("%d places are kept", len(f.failures.slots))
			}
		})
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
