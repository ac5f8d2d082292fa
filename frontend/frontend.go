package frontend

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pgebb/pgebb/backend"
	"github.com/pgebb/pgebb/cache"
	"github.com/pgebb/pgebb/config"
	"github.com/pgebb/pgebb/internal/loop"
	"github.com/pgebb/pgebb/internal/memory"
	"github.com/pgebb/pgebb/internal/querylog"
	"github.com/pgebb/pgebb/pool"
)

// Console serves the clients of the databases that are the console's, each in the
// goroutine of its login, until they leave.
type Console interface {
	// Serve gets a connection whose login is done up to AuthenticationOk. operator is
	// false for a user who may only look.
	Serve(conn net.Conn, database string, operator bool) error
	// Cancel ends what the client with this key waits for.
	Cancel(pid uint32, secret []byte)
}

// Classifier knows what a statement means.
type Classifier interface {
	// BeginsTransaction reports whether the first statement of an SQL text, which
	// may be cut off at its end, opens a transaction block.
	BeginsTransaction(sql []byte) bool
	// Deallocates reports whether an SQL text is a DEALLOCATE or a DISCARD ALL: of all
	// prepared statements, or of one.
	Deallocates(sql []byte) (name string, all, ok bool)
	// Prepared reports whether the first statement of an SQL text, which may be cut off
	// at its end, is a PREPARE or an EXECUTE.
	Prepared(sql []byte) (Prepared, bool)
}

// Prepared is what an SQL text says of a prepared statement.
type Prepared struct {
	Prepares bool   // PREPARE name …; otherwise it is EXECUTE name …, or EXPLAIN … EXECUTE name …
	Name     string // as Postgres makes it of the identifier
	From, To int    // sql[From:To] is the identifier
	End      int    // sql[To:End] is the rest of the statement, up to a semicolon
	Alone    bool   // there is no other statement in the text
}

// Options are what a Frontend is made of.
type Options struct {
	Loops      *loop.Group
	Registry   *pool.Registry
	Console    Console
	Classifier Classifier
	Judge      Judge // nil if no statement is to be judged
	Log        *slog.Logger
	Queries    *querylog.Log
	Budget     *memory.Budget // nil without a limit on memory
}

// Frontend is everything that faces clients.
type Frontend struct {
	loops      *loop.Group    // constant
	registry   *pool.Registry // constant
	console    Console        // constant
	classifier Classifier     // constant
	verdicts   Judge          // constant
	log        *slog.Logger   // constant
	queries    *querylog.Log  // constant
	keys       *keys
	auth       *Authenticator
	found      learnedUsers
	lookUps    *lookUps
	failures   *failures
	ctx        context.Context // ends with Close
	stop       context.CancelFunc
	statements *cache.Registry
	errors     backend.ErrorCodes // that we have told clients
	scratch    [][]byte           // by loop, and touched by that only: for messages that are put together
	held       []held             // by loop, and touched by that only
	unread     []unread           // the same
	coroutines []coroutines       // the same
	budget     *memory.Budget     // constant; nil without a limit on memory

	cfg        atomic.Pointer[config.Config]
	encryption atomic.Pointer[encryption] // nil if there is none
	ids        atomic.Uint64              // of clients; never used twice
	run        string                     // what the ids of errors begin with; constant
	references atomic.Uint64              // numbers errors of which the log says more
	draining   atomic.Bool
	sizes      atomic.Pointer[sizeLimit]
	// aggressive says that the first statement of a transaction decides on its host.
	aggressive  atomic.Bool
	renaming    atomic.Bool // prepared statements have other names on servers
	renamingSQL atomic.Bool // and so have those that are prepared by SQL
	pubSub      atomic.Bool // LISTEN works where clients share servers
	marks       atomic.Uint64
	policy      atomic.Pointer[backend.StatementPolicy]
	disabled    disabled       // databases that take no new clients
	logins      sync.WaitGroup // goroutines that log in, or serve the console
	arriving    atomic.Int64   // logins that are under way on loops
	closed      atomic.Bool    // nobody arrives any more

	mu        sync.Mutex
	listeners []*Listener           // guarded by mu
	open      map[net.Conn]struct{} // connections of those goroutines; guarded by mu
}

// New makes a Frontend; it accepts nobody before Listen.
func New(cfg *config.Config, o Options) *Frontend {
	f := &Frontend{
		loops: o.Loops, registry: o.Registry, console: o.Console, classifier: o.Classifier, verdicts: o.Judge, log: o.Log, queries: o.Queries,
		keys: newKeys(), open: make(map[net.Conn]struct{}),
		statements: o.Registry.Registry(), scratch: make([][]byte, len(o.Loops.Loops())), held: make([]held, len(o.Loops.Loops())),
		unread: make([]unread, len(o.Loops.Loops())), coroutines: make([]coroutines, len(o.Loops.Loops())), budget: o.Budget,
	}
	f.run = strings.ToLower(rand.Text()[:6])
	f.ctx, f.stop = context.WithCancel(context.Background())
	f.lookUps, f.failures = newLookUps(cfg.General.AuthQueryCacheLimit), newFailures()
	f.auth = NewAuthenticator(cfg, f)
	f.watchBudget()
	f.apply(cfg)
	f.logins.Go(f.forgetIdleUsers)
	for _, l := range f.loops.Loops() {
		l.Post(func() { l.OnTick(func(now time.Duration) { f.sweep(l, now) }) })
	}
	return f
}

// Update makes a new configuration the one that pools, logins and clients go by.
func (f *Frontend) Update(cfg *config.Config) {
	f.updatePools(cfg)
	f.auth.Update(cfg)
	f.apply(cfg)
}

func (f *Frontend) apply(cfg *config.Config) {
	f.cfg.Store(cfg)
	f.sizes.Store(&sizeLimit{cfg.General.QuerySizeLimit, cfg.General.QuerySizeLimitAction == "block"})
	f.encryption.Store(newEncryption(cfg.ClientTLS))
	f.renaming.Store(cfg.General.PreparedStatements != "disabled")
	f.renamingSQL.Store(cfg.General.PreparedStatements == "full")
	f.aggressive.Store(cfg.General.ReadWriteStrategy == "aggressive")
	f.pubSub.Store(cfg.General.PubSubChannelSize > 0)
	f.policy.Store(statementPolicy(cfg))
	period := sweepPeriod(cfg)
	for _, l := range f.loops.Loops() {
		l.SetTick(period)
	}
}

// left forgets a client that is closed.
func (f *Frontend) left(c *Client, l *loop.Loop, reason error) {
	f.keys.remove(c)
	if f.cfg.Load().General.LogDisconnections {
		set := c.pool.Settings()
		f.log.Info("client disconnected", "client_id", c.id, "user", set.User, "database", set.Database, "reason", reasonText(reason))
	}
}

func reasonText(err error) string {
	var e *Error
	switch {
	case err == nil:
		return "the client said goodbye"
	case errors.As(err, &e):
		return fmt.Sprintf("%s (SQLSTATE %s)", e.Message, e.Code)
	case errors.Is(err, io.EOF):
		return "the client closed its connection without saying goodbye"
	}
	return err.Error()
}

// track notes the connection of a login; false when pgebb is shutting down.
func (f *Frontend) track(conn net.Conn) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.open == nil {
		return false
	}
	f.open[conn] = struct{}{}
	f.logins.Add(1)
	return true
}

// begins counts a goroutine that belongs to a login; false when pgebb is shutting down.
func (f *Frontend) begins() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.open == nil {
		return false
	}
	f.logins.Add(1)
	return true
}

func (f *Frontend) untrack(conn net.Conn) {
	f.mu.Lock()
	delete(f.open, conn)
	f.mu.Unlock()
	f.logins.Done()
}

func remote(conn net.Conn) string {
	if a := conn.RemoteAddr(); a != nil && a.Network() != "unix" {
		return a.String()
	}
	return "unix"
}

func (f *Frontend) beginsTransaction(typ byte, body []byte) bool {
	sql, ok := sqlOf(typ, body)
	return ok && f.classifier.BeginsTransaction(sql)
}

func (f *Frontend) logError(c *Client, e *Error) {
	f.errors.Count([]byte(e.Code))
	set := c.pool.Settings()
	attrs := []any{"client_id", c.id, "user", set.User, "database", set.Database, "sqlstate", e.Code, "error", e.Message, "detail", e.Detail}
	f.log.Info("error sent to client", append(attrs, f.refer(e)...)...)
}

func (f *Frontend) logServerError(c *Client, e *backend.ServerError) {
	set := c.pool.Settings()
	f.log.Info("login refused by the server", "client_id", c.id, "user", set.User, "database", set.Database, "sqlstate", e.Code(), "error", e.Message())
}

func (f *Frontend) logRefusal(c *Client, r backend.Refusal) {
	set := c.pool.Settings()
	f.log.Info("start-up parameter not set", "client_id", c.id, "user", set.User, "database", set.Database, "parameter", r.Param.Name, "error", r.Error())
}

// Drain stops accepting, lets clients finish their transactions and says goodbye
// to each. It returns when all have left or ctx ends, with how many are left.
func (f *Frontend) Drain(ctx context.Context) (left int) {
	f.draining.Store(true)
	f.closeListeners()
	f.eachClient(func(c *Client) {
		if c.state == stateIdle || c.state == stateStarting || c.state == stateWaiting && c.held == nil {
			c.bye(errShutdown())
			return
		}
		c.releaseIfDone()
	})
	return f.Await(ctx)
}

// CancelAll cancels what the clients that are left are doing.
func (f *Frontend) CancelAll() {
	f.eachClient(func(c *Client) {
		if c.state == stateActive && c.server.Working() {
			c.server.Cancel(func() {})
		}
	})
}

// Close ends all logins and the console's connections, and returns when their
// goroutines have ended. The loops are stopped after it.
func (f *Frontend) Close() {
	f.closeListeners()
	f.stop()
	f.mu.Lock()
	for conn := range f.open {
		_ = conn.SetDeadline(time.Unix(1, 0))
		conn.Close()
	}
	f.open = nil
	f.mu.Unlock()
	f.closed.Store(true)
	for _, l := range f.loops.Loops() {
		l.Call(func() {
			l.Each(func(h loop.Handler) {
				if a, ok := h.(*arrival); ok {
					a.abandon()
				}
			})
			idle := &f.coroutines[l.ID()]
			idle.end(len(idle.free))
		})
	}
	f.logins.Wait()
	f.auth.working.Wait()
}

// eachClient runs fn for every client on its loop and returns when it was run for
// all.
func (f *Frontend) eachClient(fn func(*Client)) {
	for _, l := range f.loops.Loops() {
		l.Call(func() {
			l.Each(func(h loop.Handler) {
				if c, ok := h.(*Client); ok {
					fn(c)
				}
			})
		})
	}
}

func (f *Frontend) closeListeners() {
	f.mu.Lock()
	listeners := f.listeners
	f.listeners = nil
	f.mu.Unlock()
	for _, l := range listeners {
		l.Close()
	}
}

// String names a client in logs and errors.
func (c *Client) String() string { return fmt.Sprintf("client %d", c.id) }

// Rebalance moves half of the clients of one loop that are idle to another.
func (f *Frontend) Rebalance(from, to *loop.Loop) {
	from.Post(func() {
		every := 0
		from.Each(func(h loop.Handler) {
			c, ok := h.(*Client)
			if !ok || c.state != stateIdle || c.Pending() > 0 {
				return
			}
			if every++; every%2 == 0 {
				return
			}
			if err := from.Remove(&c.Conn); err != nil {
				c.gone(err)
				return
			}
			f.held[from.ID()].leave(c)
			to.Post(func() { c.arrive(to) })
		})
	})
}

// arrive puts a client that was moved on its new loop.
func (c *Client) arrive(l *loop.Loop) {
	if err := l.Add(&c.Conn); err != nil {
		c.f.keys.remove(c)
		c.state = stateGone
		c.leaveListeners()
		c.Close()
		return
	}
	c.f.held[l.ID()].arrive(c)
	c.waiter.Loop = l
	c.hear()
	if c.f.draining.Load() {
		c.bye(errShutdown())
	}
}
