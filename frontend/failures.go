package frontend

import (
	"context"
	"errors"
	"net"
	"sync"
	"time"

	"github.com/pgebb/pgebb/config"
	"github.com/pgebb/pgebb/internal/loop"
)

// maxGuesses is how many passwords of one user from one address may be judged at the same
// time; more of them wait. One that is wrong is judged until its client is told, which takes
// failed_login_delay. A login whose client has not answered yet guesses nothing, and takes no
// place.
const maxGuesses = 64

// failures bounds how fast passwords can be guessed. Who waits does so in a goroutine, for as
// long as its login may take. It is safe for concurrent use.
type failures struct {
	mu     sync.Mutex
	slots  map[guesser]*guesses                       // guarded by mu
	rested func(context.Context, time.Duration) error // waits; constant
}

// guesser is who guesses: somebody at an address, a user.
type guesser struct{ address, user string }

// guesses are the places for the passwords of a guesser.
type guesses struct {
	free  chan struct{}
	users int // who has or wants a place; the entry goes with the last; guarded by failures.mu
}

func newFailures() *failures {
	return &failures{slots: make(map[guesser]*guesses), rested: rest}
}

func rest(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// enter waits for a place; leave gives it back.
func (f *failures) enter(ctx context.Context, g guesser) (leave func(), err error) {
	s := f.find(g)
	select {
	case s.free <- struct{}{}:
		return func() { <-s.free; f.gone(g, s) }, nil
	case <-ctx.Done():
		f.gone(g, s)
		return nil, ctx.Err()
	}
}

// tryEnter is enter if there is a place; otherwise it returns nil.
func (f *failures) tryEnter(g guesser) (leave func()) {
	s := f.find(g)
	select {
	case s.free <- struct{}{}:
		return func() { <-s.free; f.gone(g, s) }
	default:
		f.gone(g, s)
		return nil
	}
}

// find is where the places of a guesser are; gone gives that up.
func (f *failures) find(g guesser) *guesses {
	f.mu.Lock()
	defer f.mu.Unlock()
	s := f.slots[g]
	if s == nil {
		s = &guesses{free: make(chan struct{}, maxGuesses)}
		f.slots[g] = s
	}
	s.users++
	return s
}

func (f *failures) gone(g guesser, s *guesses) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if s.users--; s.users == 0 {
		delete(f.slots, g)
	}
}

// authenticate logs the client in whose connection was accepted at a time of loop.Now. Whoever fails
// waits a little to be told so.
func (f *Frontend) authenticate(conn net.Conn, st *startup, accepted time.Duration) error {
	general := &f.cfg.Load().General
	inTime := func() (context.Context, context.CancelFunc) {
		if general.ClientLoginTimeout == config.Off {
			return f.ctx, func() {}
		}
		return context.WithDeadline(f.ctx, loop.Time(accepted).Add(general.ClientLoginTimeout))
	}
	var leave func()
	err := f.auth.Authenticate(conn, st, func() (err error) {
		g := guesser{address(conn), st.User}
		if leave = f.failures.tryEnter(g); leave == nil {
			leave, err = waiting(conn, func() (func(), error) {
				ctx, cancel := inTime()
				defer cancel()
				return f.failures.enter(ctx, g)
			})
		}
		return err
	})
	if leave != nil {
		defer leave()
	}
	var e *Error
	if errors.As(err, &e) && (e.Code == "28P01" || e.Code == "28000") {
		_, late := waiting(conn, func() (func(), error) {
			ctx, cancel := inTime()
			defer cancel()
			return nil, f.failures.rested(ctx, general.FailedLoginDelay)
		})
		if late != nil {
			return late
		}
	}
	return err
}

// waiting does what may take long, without holding up the loop of a login that is on one. undo takes
// back what was done.
func waiting(conn net.Conn, slow func() (undo func(), err error)) (undo func(), err error) {
	if a, ok := conn.(*arrival); ok {
		return a.await(slow)
	}
	return slow()
}

// address is where a connection is from, without its port.
func address(conn net.Conn) string {
	if a, ok := conn.RemoteAddr().(*net.TCPAddr); ok {
		return a.IP.String()
	}
	return "unix"
}
