package pool_test

import (
	"testing"
	"time"

	"github.com/pgebb/pgebb/backend"
	"github.com/pgebb/pgebb/pool"
)

var everything pool.Scope

func TestAPausedPoolHandsNothingOutAndClosesItsServers(t *testing.T) {
	r := newRig(t, 1, "default_pool_size = 2\nmin_pool_size = 0\ncheckout_timeout = 20")
	a, b, c := r.client(1, 0), r.client(2, 0), r.client(3, 0)
	a.acquire()
	b.acquire()
	inside := a.server()
	b.release(b.server())
	if err := r.registry.Pause(everything); err != nil {
		t.Fatal(err)
	}
	r.eventually("the idle server is closed", func() bool { return r.pool.Status().Total == 1 })
	c.acquire()
	b.acquire()
	a.release(inside)
	r.eventually("the other is closed as it becomes free", func() bool { return r.pool.Status().Total == 0 && r.fake.Open() == 0 })
	if s := r.pool.Status(); !s.Paused || s.Waiting != 2 || s.Connecting != 0 {
		t.Errorf("a paused pool is %+v", s)
	}
	r.eventually("they wait for longer than checkout_timeout", func() bool { return r.pool.Status().MaxWait > 50*time.Millisecond })
	if err := r.registry.Resume(everything); err != nil {
		t.Fatal(err)
	}
	c.release(c.server())
	b.release(b.server())
}

func TestMaintenanceKeepsServers(t *testing.T) {
	r := newRig(t, 2, "default_pool_size = 2\nmin_pool_size = 0")
	a, b, c := r.client(1, 0), r.client(2, 1), r.client(3, 1)
	a.acquire()
	b.acquire()
	first, second := a.server(), b.server()
	a.release(first)
	if err := r.registry.Maintain(pool.Scope{Database: "d"}); err != nil {
		t.Fatal(err)
	}
	b.release(second)
	a.acquire()
	c.acquire()
	if s := r.pool.Status(); s.Idle != 2 || s.Waiting != 2 || !s.Paused {
		t.Errorf("under maintenance the pool is %+v", s)
	}
	if err := r.registry.EndMaintenance(pool.Scope{User: "u", Database: "d"}); err != nil {
		t.Fatal(err)
	}
	x, y := a.server(), c.server()
	if got := map[*backend.Server]bool{x: true, y: true}; !got[first] || !got[second] {
		t.Error("servers were replaced")
	}
	a.release(x)
	c.release(y)
	if n := r.fake.Most(); n != 2 {
		t.Errorf("%d connections were made, want 2", n)
	}
}

func TestAPauseHoldsForPoolsThatAReloadMakes(t *testing.T) {
	r := newRig(t, 1, "default_pool_size = 1\nmin_pool_size = 0")
	if err := r.registry.Pause(pool.Scope{Database: "d"}); err != nil {
		t.Fatal(err)
	}
	other := load(t, r.fake.Port()+1, "")
	r.registry.Update(other)
	if p := r.registry.Find("u", "d"); p == r.pool || !p.Status().Paused {
		t.Error("the new pool is not paused")
	}
	if err := r.registry.Resume(everything); err != nil {
		t.Fatal(err)
	}
	r.registry.Update(load(t, r.fake.Port(), ""))
	if r.registry.Find("u", "d").Status().Paused {
		t.Error("after RESUME a new pool is paused")
	}
}

func TestAScopeWithoutPoolsIsAnError(t *testing.T) {
	r := newRig(t, 1, "")
	for scope, want := range map[pool.Scope]string{
		{Database: "x"}:            "no such database: x",
		{User: "v", Database: "d"}: `no such pool: user "v" at database "d"`,
	} {
		for name, f := range map[string]func(pool.Scope) error{
			"Pause": r.registry.Pause, "Resume": r.registry.Resume, "Maintain": r.registry.Maintain, "Reconnect": r.registry.Reconnect,
			"Total":    func(s pool.Scope) error { _, err := r.registry.Total(s); return err },
			"Outdated": func(s pool.Scope) error { _, err := r.registry.Outdated(s); return err },
		} {
			if err := f(scope); err == nil || err.Error() != want {
				t.Errorf("%s of %v says %v, want %s", name, scope, err, want)
			}
		}
	}
}

func TestReconnectReplacesServersAsTheyBecomeFree(t *testing.T) {
	r := newRig(t, 1, "default_pool_size = 2\nmin_pool_size = 0")
	a, b := r.client(1, 0), r.client(2, 0)
	a.acquire()
	b.acquire()
	old := a.server()
	b.release(b.server())
	if err := r.registry.Reconnect(everything); err != nil {
		t.Fatal(err)
	}
	r.eventually("the idle server is closed", func() bool { return r.pool.Status().Total == 1 })
	if n, err := r.registry.Outdated(everything); n != 1 || err != nil || !r.pool.Outdated(old) {
		t.Errorf("%d servers are outdated, %v", n, err)
	}
	a.release(old)
	r.eventually("the other is closed as well", func() bool { n, _ := r.registry.Outdated(everything); return n == 0 })
	a.acquire()
	s := a.server()
	if s == old || r.pool.Outdated(s) {
		t.Error("the new server is an old one")
	}
	a.release(s)
}
