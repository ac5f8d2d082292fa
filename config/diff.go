package config

import (
	"reflect"
	"slices"
)

// Change is what a reload changes.
type Change struct {
	New, Gone []Pool
	Changed   []PoolChange
	Restart   []string // keys with their table that only a restart changes
}

// PoolChange is a pool whose settings differ.
type PoolChange struct {
	Old, New Pool
	// KeepConnections reports whether servers of the old pool can serve the new one:
	// they are at the same address, were logged in the same way, and their sessions
	// started with the same settings.
	KeepConnections bool
}

// Diff compares two configurations. A pool is the same one if clients name it by the
// same user and database and it is at the same host; of those that are not, one that is
// gone becomes one that is new.
func Diff(old, new *Config) Change {
	var c Change
	before := newUnmatched(old.Pools())
	var moved []Pool
	for _, p := range new.Pools() {
		if was, ok := before.take(&p, true); ok {
			c.compare(was, p)
		} else {
			moved = append(moved, p)
		}
	}
	for _, p := range moved {
		if was, ok := before.take(&p, false); ok {
			c.compare(was, p)
		} else {
			c.New = append(c.New, p)
		}
	}
	for _, p := range old.Pools() {
		if _, ok := before.take(&p, true); ok {
			c.Gone = append(c.Gone, p)
		}
	}
	c.Restart = NeedsRestart(old, new)
	return c
}

func (c *Change) compare(before, after Pool) {
	if !reflect.DeepEqual(before, after) {
		c.Changed = append(c.Changed, PoolChange{before, after, sameServers(&before, &after)})
	}
}

// unmatched are pools by what clients name.
type unmatched map[login][]Pool

func newUnmatched(pools []Pool) unmatched {
	u := unmatched{}
	for _, p := range pools {
		l := login{p.User, p.Database}
		u[l] = append(u[l], p)
	}
	return u
}

// take takes out a pool for the same user and database, and at the same host if so asked.
func (u unmatched) take(like *Pool, sameHost bool) (Pool, bool) {
	l := login{like.User, like.Database}
	i := slices.IndexFunc(u[l], func(p Pool) bool { return !sameHost || p.Host == like.Host && p.Port == like.Port })
	if i < 0 {
		return Pool{}, false
	}
	p := u[l][i]
	u[l] = slices.Delete(u[l], i, i+1)
	return p, true
}

func sameServers(a, b *Pool) bool {
	return a.Host == b.Host && a.Port == b.Port && a.ServerUser == b.ServerUser && a.ServerDatabase == b.ServerDatabase &&
		a.SameCredentials(b) && a.TLSVerify == b.TLSVerify &&
		a.StatementTimeout == b.StatementTimeout && a.LockTimeout == b.LockTimeout && a.ReadOnly == b.ReadOnly
}

// NeedsRestart returns the keys that differ between two configurations and that a
// reload does not change.
func NeedsRestart(old, new *Config) []string {
	var names []string
	compare := func(table string, a, b any) {
		va, vb := reflect.ValueOf(a), reflect.ValueOf(b)
		for _, k := range keysOf(va.Type()) {
			if k.restart && !va.Field(k.index).Equal(vb.Field(k.index)) {
				names = append(names, table+"."+k.name)
			}
		}
	}
	compare("general", old.General, new.General)
	compare("tcp", old.TCP, new.TCP)
	compare("memory", old.Memory, new.Memory)
	return names
}
