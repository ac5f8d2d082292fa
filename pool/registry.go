package pool

import (
	"context"
	"errors"
	"log/slog"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pgebb/pgebb/backend"
	"github.com/pgebb/pgebb/cache"
	"github.com/pgebb/pgebb/config"
	"github.com/pgebb/pgebb/internal/loop"
	"github.com/pgebb/pgebb/internal/memory"
	"github.com/pgebb/pgebb/internal/secrets"
)

// key is what makes a pool another one. What else is set for it can change while
// it lives.
type key struct {
	user, database, host       string
	port                       int
	serverUser, serverDatabase string
}

func keyOf(c *config.Pool) key {
	return key{c.User, c.Database, c.Host, c.Port, c.ServerUser, c.ServerDatabase}
}

// login is what a client names.
type login struct{ user, database string }

// Registry is all pools.
type Registry struct {
	loops      *loop.Group // constant
	log        *slog.Logger
	tcp        backend.TCPOptions
	tls        atomic.Pointer[backend.TLS] // of servers to come
	secrets    *secrets.Keeper             // credentials that are in no file
	statements *cache.Registry             // prepared statements of all clients
	errors     backend.ErrorCodes          // that Postgres has answered clients with
	lastID     atomic.Uint64
	ctx        context.Context // ends with Close
	cancel     context.CancelFunc
	dials      sync.WaitGroup // goroutines that connect
	dialSlots  chan struct{}
	wake       chan struct{} // nudges the maintenance goroutine
	wg         sync.WaitGroup

	started time.Duration // in [loop.Now]; constant

	pubSubSize   atomic.Int64 // pub_sub_channel_size
	subscribers  atomic.Int64
	unheard      atomic.Int64 // bytes of notifications that some client is still to be given
	unheardCount atomic.Int64 // how many these are
	queued       atomic.Int64 // bytes of the queues that they are in

	mu       sync.RWMutex
	pools    map[key]*Pool
	clusters map[login]*Cluster
	hosts    map[hostKey]*host
	keys     map[login]*backend.Keys // from logins of clients, where no password is configured
	general  *config.General
	lag      *config.ReplicaLag // nil if it is not configured; guarded by mu
	holds    map[Scope]hold     // for pools to come; guarded by mu
}

// NewRegistry starts the pools of a configuration, and one goroutine that looks
// after them until Close.
func NewRegistry(loops *loop.Group, cfg *config.Config, tcp backend.TCPOptions, log *slog.Logger) *Registry {
	r := &Registry{
		loops: loops, log: log, tcp: tcp,
		dialSlots: make(chan struct{}, maxConnectingAll), wake: make(chan struct{}, 1),
		pools: make(map[key]*Pool), keys: make(map[login]*backend.Keys), clusters: make(map[login]*Cluster), hosts: make(map[hostKey]*host),
		holds: make(map[Scope]hold), started: loop.Now(),
		statements: cache.NewRegistry(StatementLimits(cfg)), secrets: secrets.New(log),
	}
	r.ctx, r.cancel = context.WithCancel(context.Background())
	r.Update(cfg)
	r.wg.Go(r.maintain)
	return r
}

// Errors are how many errors Postgres has answered clients with, by SQLSTATE.
func (r *Registry) Errors() map[string]uint64 { return r.errors.Counts() }

// Registry is where the prepared statements of all clients are.
func (r *Registry) Registry() *cache.Registry { return r.statements }

const (
	// defaultStatements is how many prepared statements a server keeps, and how many
	// that nobody uses are kept, where the configuration sets no limit. PgDog has none.
	defaultStatements = 1000

	// defaultStatementMemory is how many bytes all of them may take then, if the memory
	// of the process has no limit either.
	defaultStatementMemory = 1 << 30
)

// StatementLimits are the limits of the registry of prepared statements.
func StatementLimits(cfg *config.Config) (bytes int64, unused int) {
	bytes, unused = int64(cfg.General.PreparedStatementsMemoryLimit), cfg.General.PreparedStatementsLimit
	bytes = memory.ReserveForStatements(memory.Limit(int64(cfg.Memory.Limit)), bytes)
	if bytes == 0 {
		bytes = defaultStatementMemory
	}
	if unused == math.MaxInt {
		unused = defaultStatements
	}
	return bytes, unused
}

// Update makes the pools those of a configuration. A pool that is still there
// keeps its servers and counters, and has the new settings at once; servers of one
// that is not are closed as they become free.
func (r *Registry) Update(cfg *config.Config) {
	r.statements.SetLimits(StatementLimits(cfg))
	r.tls.Store(backend.NewTLS(cfg.ServerTLS))
	r.retainSecrets(cfg)
	r.pubSubSize.Store(int64(cfg.General.PubSubChannelSize))
	r.mu.Lock()
	old := r.pools
	r.pools, r.general, r.lag = make(map[key]*Pool), &cfg.General, cfg.ReplicaLag
	byLogin := make(map[login][]*Pool)
	for _, h := range r.hosts {
		h.pools = nil
	}
	for _, c := range cfg.Pools() {
		k, l := keyOf(&c), login{c.User, c.Database}
		if r.clusters[l] == nil {
			r.clusters[l] = &Cluster{registry: r}
		}
		h := r.hostLocked(&c)
		p := old[k]
		if p == nil {
			p = newPool(r, r.clusters[l], h, h.settingsOf(c))
			p.held = r.holdsLocked(&c)
		} else {
			p.update(h.settingsOf(c))
			delete(old, k)
		}
		r.pools[k] = p
		h.pools = append(h.pools, p)
		byLogin[l] = append(byLogin[l], p)
	}
	gone, unheard, changes := r.arrangeLocked(byLogin)
	r.mu.Unlock()
	r.report(changes)
	for _, p := range old {
		p.retire()
	}
	for _, p := range gone {
		p.retire()
	}
	for _, h := range unheard {
		h.end()
	}
	r.nudge()
}

// arrangeLocked makes the clusters those of the configuration, and returns the pools without
// a place that are not needed any more, and what listens for nobody any more.
func (r *Registry) arrangeLocked(byLogin map[login][]*Pool) (gone []*Pool, unheard []*PubSub, changes []roleChange) {
	for l, c := range r.clusters {
		pools := byLogin[l]
		if nowhere := c.nowhere(); len(pools) == 0 && nowhere != nil {
			gone = append(gone, nowhere)
		}
		c.configure(pools, r.general)
		if len(pools) == 0 {
			delete(r.clusters, l)
			delete(r.keys, l)
			if h := c.hasPubSub(); h != nil {
				unheard = append(unheard, h)
			}
		}
	}
	for k, h := range r.hosts {
		if len(h.pools) == 0 {
			delete(r.hosts, k)
		} else {
			changes = append(changes, r.assignLocked(r.siblingsLocked(k.database))...)
		}
	}
	return gone, unheard, changes
}

// Find returns the pool for a user and a database as clients name them, nil if there is
// none: of several the one that a client without a wish begins with.
func (r *Registry) Find(user, database string) *Pool {
	r.mu.RLock()
	defer r.mu.RUnlock()
	c := r.clusters[login{user, database}]
	if c == nil {
		return nil
	}
	return c.Home()
}

// Pools returns all pools in the order of their IDs.
func (r *Registry) Pools() []*Pool {
	r.mu.RLock()
	defer r.mu.RUnlock()
	pools := make([]*Pool, 0, len(r.pools))
	for _, p := range r.pools {
		pools = append(pools, p)
	}
	slices.SortFunc(pools, func(a, b *Pool) int { return int(a.ID) - int(b.ID) })
	return pools
}

// Close retires all pools and returns when nothing of theirs runs any more, or
// when ctx ends.
func (r *Registry) Close(ctx context.Context) {
	r.cancel()
	for _, p := range r.Pools() {
		p.retire()
	}
	for _, h := range r.listening() {
		h.end()
	}
	done := make(chan struct{})
	go func() {
		r.dials.Wait()
		r.wg.Wait()
		close(done)
	}()
	select {
	case <-done:
	case <-ctx.Done():
	}
}

func (r *Registry) nudge() {
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// lost logs the end of a server that nobody wanted to end.
func (r *Registry) lost(p *Pool, s *backend.Server, reason error) {
	if errors.Is(reason, backend.ErrUnused) || r.ctx.Err() != nil {
		return
	}
	c := p.Settings()
	r.log.Info("server closed", "user", c.User, "database", c.Database, "server_pid", s.PID, "reason", reason)
}

// update gives the pool new settings. Servers that were logged in with other
// credentials or session settings expire.
func (p *Pool) update(c config.Pool) {
	old := p.settings.Swap(&c)
	if old.SameCredentials(&c) && old.StatementTimeout == c.StatementTimeout &&
		old.LockTimeout == c.LockTimeout && old.ReadOnly == c.ReadOnly && old.TLSVerify == c.TLSVerify {
		return
	}
	p.renew()
}

// retire closes the pool: those who wait are told, servers close when free.
func (p *Pool) retire() {
	p.mu.Lock()
	p.retired = true
	var refused []*Waiter
	for w := p.waiting.pop(); w != nil; w = p.waiting.pop() {
		refused = append(refused, w)
	}
	p.mu.Unlock()
	for _, w := range refused {
		w.refuse(ErrRetired)
	}
	p.eachServer(func(s *backend.Server) {
		if s.Idle() {
			s.Retire()
		}
	})
}

// eachServer runs f for every server on its loop, some time soon.
func (p *Pool) eachServer(f func(*backend.Server)) {
	p.mu.Lock()
	servers := make([]*backend.Server, 0, len(p.servers))
	for s := range p.servers {
		servers = append(servers, s)
	}
	p.mu.Unlock()
	for _, s := range servers {
		if l := s.Loop(); l != nil {
			l.Post(func() {
				if s.Loop() == l {
					f(s)
				}
			})
		}
	}
}

// Periods of the maintenance goroutine: while somebody waits, and otherwise.
const (
	busyPeriod = 25 * time.Millisecond
	calmPeriod = time.Second
)

// maintain runs in the registry's goroutine until Close.
func (r *Registry) maintain() {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-r.ctx.Done():
			return
		case <-r.wake:
		case <-timer.C:
		}
		now := loop.Now()
		next := min(now+calmPeriod, r.checkHosts(now))
		for _, p := range append(r.Pools(), r.nowheres()...) {
			if p.maintain(now) {
				next = now + busyPeriod
			}
			p.giveUp(now)
			p.expire(now)
			next = min(next, p.checkIdle(now))
		}
		timer.Reset(max(next-now, time.Millisecond))
	}
}

// maintain ends waits that took too long, keeps the minimum, and closes what is
// idle for too long or too old. It reports whether somebody waits.
func (p *Pool) maintain(now time.Duration) (busy bool) {
	c := p.Settings()
	var timedOut []*Waiter
	var spare []*backend.Server
	p.mu.Lock()
	for w := p.waiting.first; w != nil && p.held == 0 && c.CheckoutTimeout != config.Off && now-w.since >= c.CheckoutTimeout; w = p.waiting.first {
		p.waiting.remove(w)
		timedOut = append(timedOut, w)
	}
	timeout := &TimeoutError{Timeout: c.CheckoutTimeout, Size: c.Size, Last: p.lastError}
	spare = p.spareLocked(c, now)
	dials := p.growLocked(now)
	busy = p.waiting.n > 0 && p.held == 0 || p.failures > 0 && p.retryAt-now < calmPeriod
	p.mu.Unlock()
	for _, w := range timedOut {
		if l := w.Loop; !w.probe {
			l.Post(func() { p.Counters(l).CheckoutTimeouts++ })
		}
		w.refuse(timeout)
	}
	for _, s := range spare {
		s.Loop().Post(func() {
			if s.Idle() {
				s.Retire()
			}
		})
	}
	p.dial(dials)
	return busy
}

// spareLocked takes servers off the idle lists that are to be closed: too old, or
// idle for too long and not needed for the minimum.
func (p *Pool) spareLocked(c *config.Pool, now time.Duration) (spare []*backend.Server) {
	left := len(p.servers)
	for id, list := range p.idle {
		kept := list[:0]
		for _, s := range list { // least recently used first
			idle := c.IdleTimeout != config.Off && now-s.Since >= c.IdleTimeout && left > c.MinSize
			if idle || now >= s.Expires || left > c.Size {
				spare = append(spare, s)
				left--
				continue
			}
			kept = append(kept, s)
		}
		clear(list[len(kept):])
		p.idle[id] = kept
	}
	return spare
}
