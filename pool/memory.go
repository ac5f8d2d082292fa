package pool

import (
	"cmp"
	"slices"
	"unsafe"

	"github.com/pgebb/pgebb/backend"
	"github.com/pgebb/pgebb/internal/loop"
	"github.com/pgebb/pgebb/internal/memory"
)

// listedServer is about what a server costs its pool: its entry in the map of all and its
// place in the list of those that are idle.
const listedServer = 32

// Memory is what is held for pools and their servers, and for the prepared statements of
// all clients. It must not be called on a loop.
func (r *Registry) Memory() []memory.Holding {
	var pools, counters, resolved int64
	all := r.Pools()
	loops := len(r.loops.Loops())
	for _, p := range all {
		pools += memory.SizeOf(unsafe.Sizeof(*p)) + memory.SizeOf(unsafe.Sizeof(*p.Settings())) + int64(p.Status().Total)*listedServer +
			memory.SizeOf(loops*int(unsafe.Sizeof(p.idle[0])))
		counters += memory.SizeOf(loops * int(unsafe.Sizeof(backend.Counters{})))
		resolved += p.Resolved.Bytes()
	}
	var sum backend.Memory
	servers := int64(0)
	r.eachServerOf(all, func(_ *Pool, s *backend.Server) {
		sum.Add(s.Memory())
		servers++
	})
	texts, overhead, statements := r.statements.Statements()
	return []memory.Holding{
		{Name: "pools", Doc: "pools, their settings and lists of servers", Bytes: pools, Items: int64(len(all))},
		{Name: "pool_counters", Doc: "statistics of pools, for each loop", Bytes: counters, Items: int64(len(all) * loops)},
		{Name: "login_parameters", Doc: "what start-up parameters of clients came to", Bytes: resolved, Items: int64(len(all)), Limit: int64(len(all)) * backend.ResolvedLimit},
		{Name: "servers", Doc: "connections to Postgres", Bytes: sum.Object, Items: servers},
		{Name: "server_buffers", Doc: "messages of servers that are not whole yet", Bytes: sum.Buffers, Items: servers},
		{Name: "server_queues", Doc: "messages that servers have not answered yet", Bytes: sum.Queue, Items: servers},
		{Name: "server_statements", Doc: "which prepared statements servers have", Bytes: sum.Statements, Items: servers},
		{Name: "statement_texts", Doc: "texts of prepared statements, each once; the limit is for all of their memory", Bytes: texts, Items: statements, Limit: r.statements.Limit()},
		{Name: "statement_registry", Doc: "what is known of prepared statements, and the tables to find them", Bytes: overhead, Items: statements},
		r.secrets.Memory(),
		r.listenersMemory(),
		{Name: "notifications", Doc: "notifications that clients have not been given yet", Bytes: r.unheard.Load() + r.queued.Load(), Items: r.unheardCount.Load(), Limit: UnheardLimit},
		backend.SetsMemory(),
	}
}

const (
	// listedChannel is about what a channel costs besides its name, with its places in maps, and
	// listedListener what each client that listens to it does, with its own note of that.
	listedChannel  = 192
	listedListener = 80
)

// listenersMemory is what is held for who listens.
func (r *Registry) listenersMemory() memory.Holding {
	h := memory.Holding{Name: "listeners", Doc: "clients that listen in transaction mode, their channels, and the connections for that"}
	h.Items = r.subscribers.Load()
	h.Bytes = h.Items * memory.SizeOf(unsafe.Sizeof(Subscriber{}))
	for _, p := range r.listening() {
		p.mu.Lock()
		h.Bytes += memory.SizeOf(unsafe.Sizeof(*p))
		if p.running {
			h.Bytes += backend.ListenerBuffer
		}
		for name, ch := range p.channels {
			h.Bytes += listedChannel + memory.SizeOf(len(name)) + int64(len(ch.subscribers))*listedListener
		}
		p.mu.Unlock()
	}
	return h
}

// VerifyMemory counts anew what is counted by changes. It must not be called on a loop.
func (r *Registry) VerifyMemory() error {
	if err := r.statements.Verify(); err != nil {
		return err
	}
	return backend.VerifySets()
}

// EachServer calls f for every server on its loop, one after the other, and returns
// when that is done. It must not be called on a loop.
func (r *Registry) EachServer(f func(*Pool, *backend.Server)) { r.eachServerOf(r.Pools(), f) }

func (r *Registry) eachServerOf(pools []*Pool, f func(*Pool, *backend.Server)) {
	type owned struct {
		p *Pool
		s *backend.Server
	}
	byLoop := map[*loop.Loop][]owned{}
	for _, p := range pools {
		p.mu.Lock()
		for s := range p.servers {
			if l := s.Loop(); l != nil { // nil while it goes from one to another
				byLoop[l] = append(byLoop[l], owned{p, s})
			}
		}
		p.mu.Unlock()
	}
	for _, l := range r.loops.Loops() {
		list := byLoop[l]
		if list == nil {
			continue
		}
		slices.SortFunc(list, func(a, b owned) int { return cmp.Compare(a.s.ID, b.s.ID) })
		l.Call(func() {
			for _, o := range list {
				if o.s.Loop() == l && !o.s.Closed() {
					f(o.p, o.s)
				}
			}
		})
	}
}
