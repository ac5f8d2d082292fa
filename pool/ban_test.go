package pool_test

import (
	"slices"
	"testing"
	"time"

	"github.com/pgebb/pgebb/config"
	"github.com/pgebb/pgebb/pool"
)

const twoReplicas = "load_balancing_strategy = 'round_robin'\nmin_pool_size = 0\n"

func TestAReplicaThatCannotBeReachedIsBannedAndItsClientsGoElsewhere(t *testing.T) {
	f := newFleet(t, twoReplicas+"read_write_split = 'exclude_primary'", "primary", "replica", "replica")
	f.fakes[1].Deny("57P03")
	for i := range 4 {
		c := f.client(uint64(i+1), pool.Read)
		p, s := f.acquire(c, pool.Read)
		if f.index(p) != 2 {
			t.Errorf("a read is served by host %d", f.index(p))
		}
		c.release(s)
	}
	st := f.pools()[1].Status()
	if st.Ban == nil || st.Ban.Manual || !st.Down || st.Ban.Until-st.Ban.Since != 5*time.Minute {
		t.Errorf("the host that cannot be reached: %+v, %+v", st, st.Ban)
	}
	// It does not come back before its time, though it can be reached again.
	f.fakes[1].Deny("")
	f.eventually("it can be reached", func() bool { return !f.pools()[1].Status().Down })
	if got := f.choose(pool.Read, 10); got[1] != 0 {
		t.Errorf("a banned host gets reads: %v", got)
	}
}

func TestABanEndsAtItsTimeIfTheHostCanBeReached(t *testing.T) {
	f := newFleet(t, twoReplicas+"ban_timeout = 1", "primary", "replica")
	f.fakes[1].Deny("57P03")
	c := f.client(1, pool.Read)
	for f.pools()[1].Status().Ban == nil {
		_, s := f.acquire(c, pool.Read)
		c.release(s)
	}
	f.registry.Pools()[1].CheckNow() // wakes the registry up
	if f.pools()[1].Status().Ban == nil {
		t.Error("the ban has ended, and the host cannot be reached")
	}
	f.fakes[1].Deny("")
	f.eventually("the ban ends", func() bool { return f.pools()[1].Status().Ban == nil })
	if got := f.choose(pool.Read, 10); !slices.Equal(got, []int{5, 5}) {
		t.Errorf("reads go to %v", got)
	}
}

func TestWhoWaitsForAHostThatDoesNotAnswerGoesElsewhereInTime(t *testing.T) {
	f := newFleet(t, twoReplicas+"read_write_split = 'exclude_primary'\ncheckout_timeout = 2000\nconnect_timeout = 60000", "primary", "replica", "replica")
	f.fakes[1].Hold(true)
	for i := range 4 {
		c := f.client(uint64(i+1), pool.Read)
		p, s := f.acquire(c, pool.Read)
		if f.index(p) != 2 {
			t.Errorf("a read is served by host %d", f.index(p))
		}
		c.release(s)
	}
	if st := f.pools()[1].Status(); st.Ban == nil || !st.Down {
		t.Errorf("the host that does not answer: %+v", st)
	}
	f.fakes[1].Hold(false)
	f.eventually("it is reached", func() bool { return !f.pools()[1].Status().Down })
}

func TestTheLastHostIsNeverBanned(t *testing.T) {
	f := newFleet(t, twoReplicas+"read_write_split = 'exclude_primary'\ncheckout_timeout = 60000", "primary", "replica", "replica")
	f.fakes[1].Deny("57P03")
	f.fakes[2].Deny("57P03")
	c := f.client(1, pool.Read)
	done := make(chan struct{})
	go func() {
		_, s := f.acquire(c, pool.Read)
		c.release(s)
		close(done)
	}()
	f.eventually("both are down", func() bool { return f.pools()[1].Status().Down && f.pools()[2].Status().Down })
	if f.pools()[1].Status().Ban != nil && f.pools()[2].Status().Ban != nil {
		t.Error("both hosts are banned")
	}
	// Whichever of them comes back serves, banned or not.
	for _, i := range []int{1, 2} {
		if f.pools()[i].Status().Ban != nil {
			f.fakes[i].Deny("")
			f.eventually("it is reached", func() bool { return !f.pools()[i].Status().Down })
			break
		}
	}
	f.fakes[1].Deny("")
	f.fakes[2].Deny("")
	<-done
}

func TestWithoutBansAHostThatCannotBeReachedGetsNoReadsEither(t *testing.T) {
	f := newFleet(t, twoReplicas+"ban_timeout = 0", "primary", "replica")
	f.fakes[1].Deny("57P03")
	c := f.client(1, pool.Read)
	for range 4 {
		p, s := f.acquire(c, pool.Read)
		if f.index(p) != 0 {
			t.Errorf("a read is served by host %d", f.index(p))
		}
		c.release(s)
	}
	if f.pools()[1].Status().Ban != nil {
		t.Error("it is banned")
	}
	f.fakes[1].Deny("")
	f.eventually("it is reached", func() bool { return !f.pools()[1].Status().Down })
	if got := f.choose(pool.Read, 10); got[1] != 5 {
		t.Errorf("reads go to %v", got)
	}
}

func TestAManualBanEndsWhenTheOperatorSaysSo(t *testing.T) {
	f := newFleet(t, twoReplicas+"ban_timeout = 1", "primary", "replica")
	primary, replica := f.pools()[0], f.pools()[1]
	replica.Ban("maintenance")
	for range 3 {
		f.registry.Pools()[0].CheckNow()
		if got := f.choose(pool.Read, 10); got[1] != 0 {
			t.Errorf("a banned host gets reads: %v", got)
		}
	}
	if b := replica.Status().Ban; b == nil || !b.Manual || b.Reason != "maintenance" {
		t.Errorf("its ban is %+v", b)
	}
	primary.Ban("maintenance")
	if got := f.choose(pool.Write, 10); got[0] != 10 {
		t.Errorf("with the primary banned writes go to %v", got)
	}
	if f.cluster.Choose(pool.Read) == nil || primary.Status().Ban == nil || replica.Status().Ban == nil {
		t.Error("a read ends bans that an operator has asked for")
	}
	if !primary.Unban() || !replica.Unban() || replica.Unban() {
		t.Error("Unban does not say whether there was a ban")
	}
	if got := f.choose(pool.Read, 10); !slices.Equal(got, []int{5, 5}) {
		t.Errorf("reads go to %v", got)
	}
}

func TestThePrimaryServesReadsWhileAReplicaIsBannedIfItIsToldSo(t *testing.T) {
	f := newFleet(t, twoReplicas+"read_write_split = 'include_primary_if_replica_banned'", "primary", "replica", "replica")
	f.pools()[1].Ban("test")
	if got := f.choose(pool.Read, 10); !slices.Equal(got, []int{5, 0, 5}) {
		t.Errorf("reads go to %v", got)
	}
}

func TestClientsThatWaitForABannedHostGoElsewhere(t *testing.T) {
	f := newFleet(t, "default_pool_size = 1\nmin_pool_size = 0\nread_write_split = 'exclude_primary'\nload_balancing_strategy = 'round_robin'", "primary", "replica", "replica")
	holder := f.client(1, pool.Read)
	p, s := f.acquire(holder, pool.Read)
	waiting := f.client(2, pool.Read)
	waiting.loop.Call(func() {
		if s, err := p.Acquire(&waiting.waiter); s != nil || err != nil {
			t.Errorf("there is a server: %v, %v", s, err)
		}
	})
	p.Ban("test")
	if err := waiting.refusal(); err != pool.ErrMoved {
		t.Errorf("who waits is told %v", err)
	}
	q, other := f.acquire(waiting, pool.Read)
	if q == p {
		t.Error("it is served by the banned host")
	}
	waiting.release(other)
	holder.release(s)
}

func TestAReplicaWhoseServersAreSilentIsBannedAndTheyAreClosed(t *testing.T) {
	f := newFleet(t, "min_pool_size = 3\nhealthcheck_timeout = 100\nidle_healthcheck_delay = 0\nidle_healthcheck_interval = 1000000", "primary", "replica")
	replica := f.pools()[1]
	f.eventually("its servers are there", func() bool { return replica.Status().Idle >= 2 })
	f.fakes[1].Silence(true)
	f.fakes[1].Deny("57P03")
	replica.CheckNow()
	f.eventually("it is banned", func() bool { return replica.Status().Ban != nil })
	f.eventually("its servers are closed", func() bool { return replica.Status().Total == 0 })
	if replica.Status().Role != config.Replica {
		t.Errorf("its role is %s", replica.Status().Role)
	}
}

func TestAnIdleServerThatAnswersStaysIdle(t *testing.T) {
	f := newFleet(t, "min_pool_size = 1\nidle_healthcheck_interval = 0", "primary")
	p := f.pools()[0]
	f.eventually("a server is there", func() bool { return p.Status().Idle == 1 })
	c := f.client(1, pool.Write)
	_, s := f.acquire(c, pool.Write)
	c.release(s)
	p.CheckNow()
	f.eventually("it is checked", func() bool {
		var checks uint64
		c.loop.Call(func() { checks = s.Totals.Checks })
		return checks == 1
	})
	if _, again := f.acquire(c, pool.Write); again != s {
		t.Error("the server was replaced")
	}
	c.release(s)
}
