package pool_test

import (
	"errors"
	"testing"
	"time"

	"github.com/pgebb/pgebb/config"
	"github.com/pgebb/pgebb/pool"
)

// role waits until a host has a role.
func (f *fleet) role(i int, role string) {
	f.rig.t.Helper()
	f.eventually("host has the role "+role, func() bool { return f.pools()[i].Role() == role })
}

func TestRolesAreFoundOut(t *testing.T) {
	f := newFleet(t, "", "auto", "auto", "auto")
	f.role(0, config.Primary)
	f.role(1, config.Replica)
	f.role(2, config.Replica)
	if got := f.choose(pool.Write, 10); got[0] != 10 {
		t.Errorf("writes go to %v", got)
	}
}

func TestRolesOfServersThatDoNotReportThemAreAskedFor(t *testing.T) {
	f := newFleet(t, "min_pool_size = 0", "auto", "auto") // nobody connects but who asks
	f.role(0, config.Primary)
	f.role(1, config.Replica)
}

func TestAfterAPromotionWritesGoToTheNewPrimary(t *testing.T) {
	f := newFleet(t, "min_pool_size = 1\ndefault_pool_size = 1\ncheckout_timeout = 60000\nlsn_check_interval = 20", "auto", "auto")
	f.role(0, config.Primary)
	f.role(1, config.Replica)
	f.fakes[0].Deny("57P03")
	f.fakes[0].Kill()
	f.eventually("the primary is down", func() bool { return f.pools()[0].Status().Down })
	writer := f.client(1, pool.Write)
	got := make(chan *pool.Pool)
	go func() {
		p, s := f.acquire(writer, pool.Write)
		writer.release(s)
		got <- p
	}()
	f.eventually("the writer waits", func() bool { return f.pools()[0].Status().Waiting == 1 })
	f.fakes[1].Be(false, 2, "0/200")
	if p := <-got; f.index(p) != 1 {
		t.Errorf("who waited for the primary gets host %d", f.index(p))
	}
	// The old primary comes back and does not know that it is one no longer.
	f.fakes[0].Deny("")
	f.role(0, config.Auto)
	if got := f.choose(pool.Write, 10); got[1] != 10 {
		t.Errorf("writes go to %v", got)
	}
	if got := f.choose(pool.Read, 10); got[1] != 10 {
		t.Errorf("reads go to %v", got)
	}
	// It was made a replica of the new one.
	f.fakes[0].Be(true, 0, "0/200")
	f.role(0, config.Replica)
}

func TestWhoWritesWaitsWhileThereIsNoPrimary(t *testing.T) {
	f := newFleet(t, "min_pool_size = 1\ncheckout_timeout = 200\nlsn_check_interval = 20", "auto", "auto")
	f.role(0, config.Primary)
	f.fakes[0].Be(true, 0, "0/100")
	f.role(0, config.Replica)
	p := f.cluster.Choose(pool.Write)
	if f.index(p) != -1 {
		t.Fatalf("writes go to host %d, and both are replicas", f.index(p))
	}
	c := f.client(1, pool.Write)
	c.loop.Call(func() {
		if s, err := p.Acquire(&c.waiter); s != nil || err != nil {
			t.Errorf("there is a server: %v, %v", s, err)
		}
	})
	var timeout *pool.TimeoutError
	if err := c.refusal(); !errors.As(err, &timeout) || timeout.Last == nil {
		t.Errorf("who waits is told %v", err)
	}
	if got := f.choose(pool.Read, 100); got[0] == 0 || got[1] == 0 {
		t.Errorf("reads go to %v", got)
	}
}

func TestAReplicaThatIsBehindIsBannedUntilItHasCaughtUp(t *testing.T) {
	const often = "lsn_check_delay = 0\nlsn_check_interval = 10\n"
	for name, limit := range map[string]string{
		"time": often + "ban_replica_lag = 50", "bytes": often + "ban_replica_lag_bytes = 1000",
		"replica_lag":           "[replica_lag]\ncheck_interval = 10\nmax_age = 50", // is enough by itself
		"the shorter one":       often + "ban_replica_lag = 86400000\n[replica_lag]\ncheck_interval = 86400000\nmax_age = 50",
		"the shorter other one": "ban_replica_lag = 50\n[replica_lag]\ncheck_interval = 10\nmax_age = 86400000",
	} {
		t.Run(name, func(t *testing.T) {
			f := newFleet(t, limit, "primary", "replica")
			replica := f.pools()[1]
			f.fakes[0].Be(false, 1, "1/0")
			f.fakes[1].Be(true, 0, "0/FFFFFF00")
			if name == "bytes" { // 256 of them are not too many
				f.eventually("it is known how far it is behind", func() bool {
					r, ok := f.registry.Replication(replica)
					return ok && r.LagBytes == 256
				})
			}
			f.fakes[0].Be(false, 1, "1/1000")
			f.eventually("it is banned", func() bool { return replica.Status().Ban != nil })
			if b := replica.Status().Ban; b.Manual || b.Until != 0 {
				t.Errorf("its ban is %+v", b)
			}
			if got := f.choose(pool.Read, 10); got[0] != 10 {
				t.Errorf("reads go to %v", got)
			}
			f.fakes[1].Be(true, 0, "1/1000")
			f.eventually("it is not", func() bool { return replica.Status().Ban == nil })
			r, ok := f.registry.Replication(replica)
			if !ok || r.Lag != 0 || r.LagBytes != 0 || r.LSN != 0x1_0000_1000 || !r.Recovering || r.Age < 0 || r.Age > time.Minute {
				t.Errorf("it says %+v, %v", r, ok)
			}
		})
	}
}
