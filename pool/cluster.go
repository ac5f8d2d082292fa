package pool

import (
	"errors"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/pgebb/pgebb/config"
)

// ErrMoved says that another pool of the cluster is to be asked: [Cluster.Choose] again.
var ErrMoved = errors.New("another host serves this")

// errNoPrimary is why who writes has to wait.
var errNoPrimary = errors.New("none of its hosts is a primary at present")

// Cluster is the pools of one user at one database, one for each host. It chooses which
// of them a request goes to. It is safe for concurrent use.
type Cluster struct {
	registry *Registry // constant
	members  atomic.Pointer[members]
	split    atomic.Bool   // there is more than one pool
	turn     atomic.Uint32 // of the strategies that take one host after the other

	mu      sync.Mutex
	credits map[*Pool]int // of weighted_round_robin; guarded by mu, nil before it is needed
	pubsub  *PubSub       // guarded by mu, nil before anybody listens
}

// members are what a cluster consists of at a time. They are immutable.
type members struct {
	pools    []*Pool // in the order of the files
	primary  *Pool   // that writes go to; nil while it is not known
	replicas []*Pool
	all      []*Pool // the primary and the replicas
	reads    []*Pool // those of them that serve reads as long as nothing is wrong
	nowhere  *Pool   // where who writes waits while there is no primary; nil if roles are not found out
	strategy string
	split    string
}

// Access is what a request needs of a host.
type Access uint8

const (
	Any     Access = iota // whatever comes next decides
	Write                 // only the primary will do
	Read                  // any host that serves reads
	Replica               // a replica, because the client asks for one
)

// Split reports whether there is anything to choose.
func (c *Cluster) Split() bool { return c.split.Load() }

// Has reports whether a pool is one of the cluster's.
func (c *Cluster) Has(p *Pool) bool { return slices.Contains(c.members.Load().pools, p) }

// Home is the pool for who has not said yet what it needs: the primary's, if it can be
// reached.
func (c *Cluster) Home() *Pool {
	m := c.members.Load()
	switch {
	case len(m.pools) == 1:
		return m.pools[0]
	case m.primary != nil && !m.primary.down.Load():
		return m.primary
	}
	for _, p := range m.pools {
		if p.usable() {
			return p
		}
	}
	if m.primary != nil {
		return m.primary
	}
	return m.pools[0]
}

// Choose is the pool for a request. It is nil if the cluster is no longer in the
// configuration.
func (c *Cluster) Choose(need Access) *Pool {
	m := c.members.Load()
	if len(m.pools) < 2 {
		if len(m.pools) == 1 {
			return m.pools[0]
		}
		return nil
	}
	if need == Write || need == Any {
		switch {
		case m.primary != nil:
			return m.primary
		case m.nowhere != nil:
			return m.nowhere
		}
		// There are only replicas. Postgres says that they do not write.
	}
	var room [8]*Pool
	return c.pick(m, m.candidates(need, room[:0]))
}

// candidates are the pools that a read can go to now.
func (m *members) candidates(need Access, to []*Pool) []*Pool {
	if need == Replica {
		if to = usables(m.replicas, to); len(to) > 0 {
			return to
		}
	}
	set := m.reads
	if m.split == "include_primary_if_replica_banned" && m.primary != nil && len(usables(m.replicas, to)) < len(m.replicas) {
		set = m.all
	}
	if to = usables(set, to[:0]); len(to) > 0 {
		return to
	}
	return lastResort(set, to)
}

func usables(set, to []*Pool) []*Pool {
	for _, p := range set {
		if p.usable() {
			to = append(to, p)
		}
	}
	return to
}

// lastResort is for when no host is as it should be: all bans that nobody has asked for
// are lifted.
func lastResort(set, to []*Pool) []*Pool {
	for _, p := range set {
		p.forgive()
	}
	if to = usables(set, to); len(to) > 0 {
		return to
	}
	for _, p := range set {
		if !p.banned.Load() {
			to = append(to, p)
		}
	}
	if len(to) > 0 {
		return to
	}
	return append(to, set...)
}

// others reports whether reads have somewhere else to go than a pool.
func (c *Cluster) others(p *Pool) bool {
	m := c.members.Load()
	set := m.reads
	if m.split == "include_primary_if_replica_banned" {
		set = m.all
	}
	return slices.ContainsFunc(set, func(o *Pool) bool { return o != p && o.usable() })
}

// configure gives the cluster its pools and what else the configuration says. Registry.mu
// is held.
func (c *Cluster) configure(pools []*Pool, g *config.General) {
	c.arrange(members{pools: pools, strategy: g.LoadBalancingStrategy, split: g.ReadWriteSplit})
	c.mu.Lock()
	defer c.mu.Unlock()
	c.credits = nil
}

// reassign finds out anew who is the primary. Registry.mu is held.
func (c *Cluster) reassign() { c.arrange(*c.members.Load()) }

// arrange fills in what follows from the roles of the hosts.
func (c *Cluster) arrange(m members) {
	before := c.members.Load()
	m.primary, m.replicas = nil, nil
	auto := false
	for _, p := range m.pools {
		auto = auto || p.host.auto
		switch p.host.role {
		case config.Primary:
			m.primary = p
		case config.Replica:
			m.replicas = append(m.replicas, p)
		}
	}
	m.all = m.pools // what there is, as long as there is no primary
	if m.primary != nil {
		m.all = append([]*Pool{m.primary}, m.replicas...)
	}
	m.reads = m.replicas
	switch {
	case len(m.replicas) == 0 || m.split == "include_primary":
		m.reads = m.all
	case m.split == "prefer_primary" && m.primary != nil:
		m.reads = []*Pool{m.primary}
	}
	m.nowhere = nil
	if before != nil {
		m.nowhere = before.nowhere
	}
	if m.nowhere == nil && auto && len(m.pools) > 1 {
		m.nowhere = newNowhere(c, m.pools[0])
	}
	c.members.Store(&m)
	c.split.Store(len(m.pools) > 1)
	if before == nil || before.primary == m.primary {
		return
	}
	c.relisten()
	for _, p := range append([]*Pool{before.nowhere, before.primary}, before.replicas...) {
		if p != nil {
			p.moveWaiters(true)
		}
	}
}

// newNowhere makes a pool without a place. What it counts, the first pool counts.
func newNowhere(c *Cluster, like *Pool) *Pool {
	settings := *like.Settings()
	settings.Size, settings.MinSize = 0, 0
	p := newPool(c.registry, c, &host{role: config.Auto}, settings)
	p.counters, p.lastError = like.counters, errNoPrimary
	return p
}

// moveWaiters makes who waits choose again: all, or those that others can serve.
func (p *Pool) moveWaiters(all bool) {
	p.mu.Lock()
	var moved []*Waiter
	for w := p.waiting.first; w != nil; {
		next := w.next
		if all || w.Elsewhere {
			p.waiting.remove(w)
			w.moved = true
			moved = append(moved, w)
		}
		w = next
	}
	p.mu.Unlock()
	for _, w := range moved {
		w.refuse(ErrMoved)
	}
}

// nowhere is the pool of who waits for a primary, nil if there is none.
func (c *Cluster) nowhere() *Pool {
	if m := c.members.Load(); m != nil {
		return m.nowhere
	}
	return nil
}

// nowheres are these pools of all clusters.
func (r *Registry) nowheres() (pools []*Pool) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	for _, c := range r.clusters {
		if p := c.nowhere(); p != nil {
			pools = append(pools, p)
		}
	}
	return pools
}

// usable reports whether the pool can be expected to serve a read.
func (p *Pool) usable() bool { return !p.banned.Load() && !p.down.Load() }

// active is the number of servers in use and of clients that wait.
func (p *Pool) active() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := len(p.servers) + p.waiting.n - p.waiting.probes
	for _, list := range p.idle {
		n -= len(list)
	}
	return n
}
