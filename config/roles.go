package config

import (
	"slices"
	"time"
)

// Roles of a host.
const (
	Primary = "primary" // writes go to it
	Replica = "replica"
	Auto    = "auto" // to be found out
)

// Health is how it is found out whether a host is well, and what follows if not.
type Health struct {
	Interval     time.Duration // a server that was not used for so long is checked at the checkout
	Timeout      time.Duration // of a check
	IdleInterval time.Duration // between checks of idle servers; 0 for none
	IdleDelay    time.Duration // from the start to the first
	BanTimeout   time.Duration // 0 for no bans
	MaxLag       time.Duration // of a replica that gets reads
	MaxLagBytes  uint64        // the same, in bytes of WAL
}

func (c *Config) health() Health {
	g := &c.General
	maxLag := g.BanReplicaLag
	if c.ReplicaLag != nil {
		maxLag = min(maxLag, c.ReplicaLag.MaxAge)
	}
	return Health{
		g.HealthcheckInterval, g.HealthcheckTimeout, g.IdleHealthcheckInterval, g.IdleHealthcheckDelay,
		g.BanTimeout, maxLag, uint64(g.BanReplicaLagBytes),
	}
}

// rank says which role makes a host the one that stands for its database.
func rank(role string) int {
	switch role {
	case Primary:
		return 0
	case Auto:
		return 1
	}
	return 2
}

// hostsByName are the hosts that each database is served by, in the order of the file: all
// that there are, each once, but of several primaries only the first.
func (c *Config) hostsByName() map[string][]*Database {
	type host struct {
		name, host string
		port       int
	}
	hosts := map[string][]*Database{}
	seen := map[host]bool{}
	primary := map[string]bool{}
	for i := range c.Databases {
		db := &c.Databases[i]
		h := host{db.Name, db.Host, db.Port}
		if seen[h] || db.Role == Primary && primary[db.Name] {
			continue
		}
		seen[h] = true
		primary[db.Name] = primary[db.Name] || db.Role == Primary
		hosts[db.Name] = append(hosts[db.Name], db)
	}
	return hosts
}

// byRole are the settings that can differ by the role of a host.
type byRole struct {
	size, least *int
	idle        *time.Duration
}

// orElse takes what a does not set from b.
func (a byRole) orElse(b byRole) byRole {
	if a.size == nil {
		a.size = b.size
	}
	if a.least == nil {
		a.least = b.least
	}
	if a.idle == nil {
		a.idle = b.idle
	}
	return a
}

func (u *User) forRole(role string) byRole {
	r := byRole{u.PoolSizePrimary, u.MinPoolSizePrimary, u.IdleTimeoutPrimary}
	if role == Replica {
		r = byRole{u.PoolSizeReplica, u.MinPoolSizeReplica, u.IdleTimeoutReplica}
	}
	return r.orElse(byRole{u.PoolSize, u.MinPoolSize, u.IdleTimeout})
}

func (db *Database) forRole(role string) byRole {
	r := byRole{db.PoolSizePrimary, db.MinPoolSizePrimary, db.IdleTimeoutPrimary}
	if role == Replica {
		r = byRole{db.PoolSizeReplica, db.MinPoolSizeReplica, db.IdleTimeoutReplica}
	}
	return r.orElse(byRole{db.PoolSize, db.MinPoolSize, db.IdleTimeout})
}

// sizes are the settings that differ by role, as they hold.
type sizes struct {
	size, least int
	idle        time.Duration
}

// sizesByRole are those of a pool whose host can have either role.
type sizesByRole struct{ primary, replica sizes }

func (c *Config) sizesFor(u *User, db *Database, role string, noPassword bool) sizes {
	g := &c.General
	r := u.forRole(role).orElse(db.forRole(role))
	s := sizes{first(g.DefaultPoolSize, r.size), first(g.MinPoolSize, r.least), first(g.IdleTimeout, r.idle)}
	s.least = min(s.least, s.size)
	if noPassword {
		s.least = 0 // without a password nobody knows whether the login works
	}
	return s
}

// sized gives a pool what differs by role.
func (c *Config) sized(p Pool, u *User, db *Database) Pool {
	noPassword := len(p.ServerPasswords) == 0 && p.External == nil
	if db.Role != Auto {
		return p.with(c.sizesFor(u, db, db.Role, noPassword))
	}
	p.bySize = &sizesByRole{c.sizesFor(u, db, Primary, noPassword), c.sizesFor(u, db, Replica, noPassword)}
	return p.with(p.bySize.primary)
}

func (p Pool) with(s sizes) Pool {
	p.Size, p.MinSize, p.IdleTimeout = s.size, s.least, s.idle
	return p
}

// As is the pool with the settings that hold once its host is found to have a role. For a
// host whose role is configured it is the same pool.
func (p Pool) As(role string) Pool {
	switch {
	case p.bySize == nil:
		return p
	case role == Replica:
		return p.with(p.bySize.replica)
	}
	return p.with(p.bySize.primary)
}

// FindsRole reports whether the role of the pool's host is found out.
func (p *Pool) FindsRole() bool { return p.bySize != nil }

// checkRoles looks at what the hosts of each database are.
func (d *decoder) checkRoles(c *Config) {
	told := map[string]bool{}
	for i := range c.Databases {
		db, raw := &c.Databases[i], d.databases[i]
		if db.Name == "" {
			continue
		}
		hosts := c.hosts[db.Name]
		has := func(role string) bool {
			return slices.ContainsFunc(hosts, func(h *Database) bool { return h.Role == role })
		}
		if !slices.Contains(hosts, db) {
			if slices.ContainsFunc(hosts, func(h *Database) bool { return h.Host == db.Host && h.Port == db.Port }) {
				d.warn(raw.place(), "databases", "host %s is there more than once for database %q: the first entry is used", db.Host, db.Name)
			} else {
				d.warn(raw.place(), "databases", "database %q has several primaries: the first is used, and %s gets nothing", db.Name, db.Host)
			}
			continue
		}
		if told[db.Name] {
			continue
		}
		told[db.Name] = true
		switch {
		case has(Auto) && (has(Primary) || has(Replica)):
			d.warn(raw.place(), "databases.role", "some hosts of database %q have role auto and some do not: a primary that is set stays the primary", db.Name)
		case !has(Auto) && !has(Primary):
			d.warn(raw.place(), "databases.role", "database %q has replicas only, where no statement can write", db.Name)
		}
	}
}
