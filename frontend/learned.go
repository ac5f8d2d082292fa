package frontend

import (
	"cmp"
	"maps"
	"slices"
	"sync"

	"github.com/pgebb/pgebb/config"
)

// maxLearned is how many users that are in no file can have a pool. Each of them is a role
// of Postgres's, so nobody but who makes roles can reach it.
const maxLearned = 10_000

// learnedUsers are users that are in no file, or whose password was not.
type learnedUsers struct {
	mu    sync.Mutex
	users map[learnedKey]config.Learned // guarded by mu, which is also held while pools are made of them
}

type learnedKey struct{ user, database string }

// learned implements outside.
func (f *Frontend) learned(user, database string) (password string, ok bool) {
	f.found.mu.Lock()
	defer f.found.mu.Unlock()
	l, ok := f.found.users[learnedKey{user, database}]
	return l.Password, ok && l.Password != ""
}

// learn implements outside.
func (f *Frontend) learn(l config.Learned) error {
	f.found.mu.Lock()
	defer f.found.mu.Unlock()
	key := learnedKey{l.User, l.Database}
	old, ok := f.found.users[key]
	if ok && old == l {
		return nil
	}
	if !f.cfg.Load().HasDatabase(l.Database) {
		return nil // which is told next
	}
	if !ok && len(f.found.users) >= maxLearned {
		return errTooManyUsers()
	}
	if f.found.users == nil {
		f.found.users = make(map[learnedKey]config.Learned)
	}
	f.found.users[key] = l
	f.updatePoolsLocked(f.cfg.Load())
	return nil
}

// updatePools makes the pools those of a configuration, and of the users that are in none.
func (f *Frontend) updatePools(cfg *config.Config) {
	f.found.mu.Lock()
	defer f.found.mu.Unlock()
	maps.DeleteFunc(f.found.users, func(k learnedKey, _ config.Learned) bool { return !cfg.HasDatabase(k.database) })
	f.updatePoolsLocked(cfg)
}

func (f *Frontend) updatePoolsLocked(cfg *config.Config) {
	learned := slices.SortedFunc(maps.Values(f.found.users), func(a, b config.Learned) int {
		return cmp.Or(cmp.Compare(a.User, b.User), cmp.Compare(a.Database, b.Database))
	})
	f.registry.Update(cfg.WithLearned(learned))
}
