package pool

import (
	"fmt"
	"slices"
	"time"

	"github.com/pgebb/pgebb/config"
	"github.com/pgebb/pgebb/internal/loop"
)

// maxHistory is how many positions of a primary are kept: with the default of
// lsn_check_interval, ten minutes.
const maxHistory = 120

// remember keeps a primary's position, or finds how far a replica is behind: what it has
// replayed is compared with what the primary had written when it was asked before. So
// clocks of different machines are not compared, and a primary that does nothing for an
// hour does not make its replicas an hour late. It reports whether that is news of a
// replica.
func (h *host) remember(hosts []*host) bool {
	if h.position.timeline == 0 && !h.position.recovering || h.position.lsn == 0 {
		return false // only its role is known
	}
	if h.role == config.Primary {
		if len(h.history) == maxHistory {
			h.history = slices.Delete(h.history, 0, 1)
		}
		h.history = append(h.history, h.position)
		return false
	}
	i := slices.IndexFunc(hosts, func(o *host) bool { return o.role == config.Primary })
	if i < 0 || h.role != config.Replica {
		return false
	}
	h.lag, h.behind = lagBehind(hosts[i].history, h.position)
	return true
}

// lagBehind is how long a position was overtaken at the time when it was taken, and by how
// many bytes.
func lagBehind(history []position, replica position) (lag time.Duration, bytes uint64) {
	for _, then := range history {
		if then.lsn > replica.lsn && then.at <= replica.at {
			last := history[len(history)-1]
			return replica.at - then.at, last.lsn - replica.lsn
		}
	}
	return 0, 0
}

// judgeLag bans the pools of a replica that is too far behind, until it is not.
func judgeLag(pools []*Pool, lag time.Duration, behind uint64) {
	for _, p := range pools {
		if c := &p.Settings().Health; lag > c.MaxLag || behind > c.MaxLagBytes {
			p.banFor(fmt.Sprintf("replica lag: %v, %d bytes", lag.Round(time.Millisecond), behind), true)
		} else {
			p.caughtUp()
		}
	}
}

// Replication is what a host has said last of its position in the WAL.
type Replication struct {
	Recovering bool
	LSN        uint64        // written, or replayed by a replica; 0 if it was not asked
	Lag        time.Duration // of a replica, at least; known to lsn_check_interval
	LagBytes   uint64        // the same
	Age        time.Duration // since it has said so
}

// Replication returns that for the host of a pool; false if it has said nothing yet, since
// nobody has asked (lsn_check_delay) or nobody could.
func (r *Registry) Replication(p *Pool) (Replication, bool) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	h := p.host
	if !h.position.known {
		return Replication{}, false
	}
	return Replication{h.position.recovering, h.position.lsn, h.lag, h.behind, loop.Now() - h.position.at}, true
}
