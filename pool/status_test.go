package pool_test

import (
	"testing"

	"github.com/pgebb/pgebb/backend"
)

func (r *rig) counters() backend.Counters { return r.registry.Counters(r.pool) }

func TestAttemptsToConnectAreCountedAndTheirFailures(t *testing.T) {
	r := newRig(t, 1, "default_pool_size = 1\nmin_pool_size = 0")
	r.fake.Deny("57P03")
	a := r.client(1, 0)
	a.acquire()
	r.eventually("the pool is failing", func() bool { return r.pool.Status().Failing })
	r.fake.Deny("")
	s := a.server()
	if r.pool.Status().Failing {
		t.Error("the pool is failing, though it has connected")
	}
	n := r.counters()
	if n.ConnectFailures == 0 || n.Connects != n.ConnectFailures+1 {
		t.Errorf("%d attempts to connect and %d failures, one has succeeded", n.Connects, n.ConnectFailures)
	}
	if n.AuthAttempts != n.Connects {
		t.Errorf("%d logins in %d connections", n.AuthAttempts, n.Connects)
	}
	a.release(s)
}

func TestWhoWaitsTooLongIsCounted(t *testing.T) {
	r := newRig(t, 1, "default_pool_size = 1\nmin_pool_size = 0\ncheckout_timeout = 50")
	a, b := r.client(1, 0), r.client(2, 0)
	a.acquire()
	s := a.server()
	b.acquire()
	_ = b.refusal()
	if n := r.counters(); n.CheckoutTimeouts != 1 {
		t.Errorf("%d clients have waited too long, want 1", n.CheckoutTimeouts)
	}
	a.release(s)
}

func TestServersThatAreClosedAreNotCountedAsLost(t *testing.T) {
	r := newRig(t, 1, "default_pool_size = 2\nmin_pool_size = 0\nidle_timeout = 50")
	a, b := r.client(1, 0), r.client(2, 0)
	a.acquire()
	b.acquire()
	a.release(a.server())
	b.release(b.server())
	r.eventually("idle servers are closed", func() bool { return r.pool.Status().Total == 0 && r.fake.Open() == 0 })
	if n := r.counters(); n.Lost != 0 {
		t.Errorf("%d servers are counted as lost that were closed", n.Lost)
	}
}

func TestServersThatAreLostAreCounted(t *testing.T) {
	r := newRig(t, 1, "default_pool_size = 2\nmin_pool_size = 2")
	r.eventually("two servers are there", func() bool { return r.pool.Status().Idle == 2 })
	r.fake.Kill()
	r.eventually("they are replaced", func() bool { return r.counters().Connects == 4 && r.pool.Status().Idle == 2 })
	if n := r.counters(); n.Lost != 2 {
		t.Errorf("%d servers are counted as lost, want 2", n.Lost)
	}
}
