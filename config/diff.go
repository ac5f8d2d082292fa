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
// same user and database.
func Diff(old, new *Config) Change {
	var c Change
	for _, p := range new.Pools() {
		before, ok := old.FindPool(p.User, p.Database)
		switch {
		case !ok:
			c.New = append(c.New, p)
		case !reflect.DeepEqual(before, p):
			c.Changed = append(c.Changed, PoolChange{before, p, sameServers(&before, &p)})
		}
	}
	for _, p := range old.Pools() {
		if _, ok := new.FindPool(p.User, p.Database); !ok {
			c.Gone = append(c.Gone, p)
		}
	}
	c.Restart = NeedsRestart(old, new)
	return c
}

func sameServers(a, b *Pool) bool {
	return a.Host == b.Host && a.Port == b.Port && a.ServerUser == b.ServerUser && a.ServerDatabase == b.ServerDatabase &&
		slices.Equal(a.ServerPasswords, b.ServerPasswords) && a.TLSVerify == b.TLSVerify &&
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
