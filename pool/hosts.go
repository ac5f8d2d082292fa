package pool

import (
	"slices"
	"time"

	"github.com/pgebb/pgebb/config"
)

// hostKey is what makes a host of a database another one.
type hostKey struct {
	database, host string
	port           int
}

// host is one host of one database, whoever uses it. Its fields are guarded by
// Registry.mu.
type host struct {
	key   hostKey // constant
	pools []*Pool // of all users
	auto  bool    // its role is to be found out
	role  string  // config.Auto as long as it is not known, or as it is of no use

	checking bool          // it is being asked, see [Registry.checkHosts]
	due      time.Duration // when it is to be asked next
	turn     int           // whose pool asks; the same as long as it can
	position position      // what it has said last
	history  []position    // of a primary, oldest first
	lag      time.Duration // of a replica; at least that
	behind   uint64        // the same in bytes
}

// position is what a host says about itself.
type position struct {
	known      bool // it has said anything
	recovering bool // it is a replica
	timeline   uint32
	lsn        uint64        // written, or replayed
	at         time.Duration // in [loop.Now]
}

// hostLocked returns the host of a pool that the configuration has.
func (r *Registry) hostLocked(c *config.Pool) *host {
	k := hostKey{c.Database, c.Host, c.Port}
	h := r.hosts[k]
	if h == nil {
		h = &host{key: k, role: c.Role}
		r.hosts[k] = h
	}
	h.auto = c.Role == config.Auto
	if !h.auto {
		h.role = c.Role
	}
	return h
}

// settingsOf are the settings of a pool on a host whose role may have been found out.
func (h *host) settingsOf(c config.Pool) config.Pool {
	if h.auto {
		c = c.As(h.role)
		c.Role = h.role
	}
	return c
}

// siblingsLocked are the hosts of a database.
func (r *Registry) siblingsLocked(database string) []*host {
	var hosts []*host
	for k, h := range r.hosts {
		if k.database == database {
			hosts = append(hosts, h)
		}
	}
	return hosts
}

// heard takes in what a host has said.
func (r *Registry) heard(h *host, said position) {
	changes, verdict := r.heardLocked(h, said)
	r.report(changes)
	verdict()
}

func (r *Registry) heardLocked(h *host, said position) (changes []roleChange, judge func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	judge = func() {}
	if r.hosts[h.key] != h {
		return nil, judge // it is no longer in the configuration
	}
	if said.lsn == 0 && said.recovering == h.position.recovering { // it has only said which of the two it is
		said.timeline, said.lsn = h.position.timeline, h.position.lsn
	}
	h.position = said
	hosts := r.siblingsLocked(h.key.database)
	changes = r.assignLocked(hosts)
	if h.remember(hosts) {
		pools, lag, behind := slices.Clone(h.pools), h.lag, h.behind
		judge = func() { judgeLag(pools, lag, behind) }
	}
	return changes, judge
}

// roleChange is a host that has another role than before.
type roleChange struct {
	host         hostKey
	before, role string
	said         position
}

// report logs changes of roles; no lock is held, since a log can block.
func (r *Registry) report(changes []roleChange) {
	for _, c := range changes {
		log := r.log.With("database", c.host.database, "host", c.host.host, "port", c.host.port, "role", c.role, "before", c.before, "timeline", c.said.timeline)
		if c.role == config.Auto && c.said.known {
			log.Warn("host gets nothing, because it is a primary and another one was promoted later")
		} else {
			log.Info("role of a host found out")
		}
	}
}

// assignLocked gives hosts whose roles are to be found out the roles that they have by what
// they have said. Of several that are primaries the one whose timeline is the newest was
// promoted last; another is of no use, because its data is that of a past that was left.
func (r *Registry) assignLocked(hosts []*host) (changes []roleChange) {
	var primary *host
	for _, h := range hosts {
		if !h.auto && h.role == config.Primary {
			primary = h
			break
		}
		if h.auto && h.position.known && !h.position.recovering && (primary == nil || h.before(primary)) {
			primary = h
		}
	}
	for _, h := range hosts {
		if !h.auto {
			continue
		}
		role := config.Auto
		switch {
		case h == primary:
			role = config.Primary
		case h.position.known && h.position.recovering:
			role = config.Replica
		}
		if role != h.role {
			changes = append(changes, roleChange{h.key, h.role, role, h.position})
			h.setRole(role)
		}
	}
	if len(changes) == 0 {
		return nil
	}
	for _, c := range r.clusters {
		if pools := c.members.Load().pools; len(pools) > 0 && slices.Contains(hosts, pools[0].host) {
			c.reassign()
		}
	}
	return changes
}

// before reports whether of two primaries h is the one that counts.
func (h *host) before(o *host) bool {
	if h.position.timeline != o.position.timeline {
		return h.position.timeline > o.position.timeline
	}
	return h.role == config.Primary && o.role != config.Primary
}

// setRole gives the host and its pools a role. Registry.mu is held.
func (h *host) setRole(role string) {
	h.role, h.history, h.lag, h.behind = role, nil, 0, 0
	for _, p := range h.pools {
		p.update(h.settingsOf(*p.Settings()))
	}
}
