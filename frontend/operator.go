package frontend

import (
	"context"
	"sync"
	"time"

	"github.com/pgebb/pgebb/pool"
)

// This file is what an operator can do to clients.

// disabled are databases that take no new clients.
type disabled struct {
	mu    sync.Mutex
	names map[string]struct{} // guarded by mu
}

func (d *disabled) has(database string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	_, ok := d.names[database]
	return ok
}

func (d *disabled) set(database string, on bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !on {
		delete(d.names, database)
		return
	}
	if d.names == nil {
		d.names = map[string]struct{}{}
	}
	d.names[database] = struct{}{}
}

// Disable turns new clients of a database away, or takes them again.
func (f *Frontend) Disable(database string, on bool) { f.disabled.set(database, on) }

// Disabled reports whether new clients of a database are turned away.
func (f *Frontend) Disabled(database string) bool { return f.disabled.has(database) }

// Kill closes all clients of a scope with what they are doing, and returns how many. It
// must not be called on a loop.
func (f *Frontend) Kill(s pool.Scope) (n int) {
	f.eachClient(func(c *Client) {
		set := c.pool.Settings()
		if s.Has(set) && c.kill() {
			n++
		}
	})
	return n
}

// KillClient closes a client with what it is doing; false if there is none with this id.
// It must not be called on a loop.
func (f *Frontend) KillClient(id uint64) (found bool) {
	f.eachClient(func(c *Client) {
		if c.id == id {
			found = c.kill()
		}
	})
	return found
}

// kill closes the client; false if it is as good as closed.
func (c *Client) kill() bool {
	if c.state == stateGone || c.state == stateLeaving {
		return false
	}
	c.expel(errKilled())
	return true
}

// expel closes the client, and its server with the query that it may be at. A client that
// has got only a part of a message is not told why: it would take that for the rest.
func (c *Client) expel(e *Error) {
	cut := false
	if c.server != nil {
		cut = c.server.Midway()
		c.letGo(true)
	}
	if cut {
		c.f.logError(c, e)
		c.gone(e)
		return
	}
	c.bye(e)
}

// CountByLogin is how many clients each user has at each database. It must not be called
// on a loop.
func (f *Frontend) CountByLogin() map[pool.Scope]int {
	counts := map[pool.Scope]int{}
	f.eachClient(func(c *Client) {
		set := c.pool.Settings()
		counts[pool.Scope{User: set.User, Database: set.Database}]++
	})
	return counts
}

// LoggingIn is how many connections are not logged in yet, or are the console's.
func (f *Frontend) LoggingIn() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.open) + int(f.arriving.Load())
}

// Dismiss tells every client that pgebb shuts down and closes it, whatever it is doing.
// It takes no longer than patience: a loop that is busy for longer is not waited for. It
// must not be called on a loop.
func (f *Frontend) Dismiss(patience time.Duration) {
	f.draining.Store(true)
	done := make(chan struct{})
	go func() {
		defer close(done)
		f.eachClient(func(c *Client) {
			if c.state != stateGone && c.state != stateLeaving {
				c.expel(errShutdown())
			}
		})
	}()
	select {
	case <-done:
	case <-time.After(patience):
	}
}

// Await stops accepting and returns when all clients have left, or ctx ends, with how
// many are left.
func (f *Frontend) Await(ctx context.Context) (left int) {
	f.closeListeners()
	ticker := time.NewTicker(10 * time.Millisecond)
	defer ticker.Stop()
	for {
		if left = f.keys.count(); left == 0 {
			return 0
		}
		select {
		case <-ctx.Done():
			return left
		case <-ticker.C:
		}
	}
}

// Errors are how many errors pgebb itself has told clients, by SQLSTATE.
func (f *Frontend) Errors() map[string]uint64 { return f.errors.Counts() }

// Draining reports whether pgebb is shutting down.
func (f *Frontend) Draining() bool { return f.draining.Load() }
