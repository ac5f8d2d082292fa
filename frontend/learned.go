package frontend

import (
	"cmp"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/pgebb/pgebb/config"
	"github.com/pgebb/pgebb/internal/loop"
	"github.com/pgebb/pgebb/pool"
)

// maxLearned is how many users that are in no file can have a pool. Each of them is a role
// of Postgres's, so nobody but who makes roles can reach it.
const maxLearned = 10_000

// learnedIdle is for how long a user that is in no file keeps its pools without a client. It
// is longer than any login, so that none loses its pool before its client is in.
const learnedIdle = time.Hour

// learnedUsers are users that are in no file, or whose password was not.
type learnedUsers struct {
	mu    sync.Mutex
	users map[learnedKey]*learnedUser // guarded by mu, which is also held while pools are made of them
}

type learnedUser struct {
	config.Learned
	used time.Duration // when it last logged in or was seen with a client, in [loop.Now]
}

type learnedKey struct{ user, database string }

// learned implements outside.
func (f *Frontend) learned(user, database string) (password string, ok bool) {
	f.found.mu.Lock()
	defer f.found.mu.Unlock()
	l := f.found.users[learnedKey{user, database}]
	if l == nil {
		return "", false
	}
	l.used = loop.Now()
	return l.Password, l.Password != ""
}

// learn implements outside.
func (f *Frontend) learn(l config.Learned) error {
	f.found.mu.Lock()
	defer f.found.mu.Unlock()
	key := learnedKey{l.User, l.Database}
	old := f.found.users[key]
	if old != nil && old.Learned == l {
		old.used = loop.Now()
		return nil
	}
	if !f.cfg.Load().HasDatabase(l.Database) {
		return nil // which is told next
	}
	if old == nil && len(f.found.users) >= maxLearned {
		return errTooManyUsers()
	}
	if f.found.users == nil {
		f.found.users = make(map[learnedKey]*learnedUser)
	}
	f.found.users[key] = &learnedUser{Learned: l, used: loop.Now()}
	f.updatePoolsLocked(f.cfg.Load())
	return nil
}

// updatePools makes the pools those of a configuration, and of the users that are in none.
func (f *Frontend) updatePools(cfg *config.Config) {
	f.found.mu.Lock()
	defer f.found.mu.Unlock()
	maps.DeleteFunc(f.found.users, func(k learnedKey, _ *learnedUser) bool { return !cfg.HasDatabase(k.database) })
	f.updatePoolsLocked(cfg)
}

func (f *Frontend) updatePoolsLocked(cfg *config.Config) {
	var learned []config.Learned
	for _, u := range f.found.users {
		learned = append(learned, u.Learned)
	}
	slices.SortFunc(learned, func(a, b config.Learned) int {
		return cmp.Or(cmp.Compare(a.User, b.User), cmp.Compare(a.Database, b.Database))
	})
	f.registry.Update(cfg.WithLearned(learned))
}

// forgetIdleUsers runs until Close.
func (f *Frontend) forgetIdleUsers() {
	ticker := time.NewTicker(learnedIdle / 60)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			f.forgetUsers(loop.Now() - learnedIdle)
		case <-f.ctx.Done():
			return
		}
	}
}

func (l *learnedUsers) anyBefore(t time.Duration) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, u := range l.users {
		if u.used < t {
			return true
		}
	}
	return false
}

// forgetUsers ends the pools of the learned users that were last used before a time, and
// have no client now. It must not be called on a loop.
func (f *Frontend) forgetUsers(before time.Duration) {
	if !f.found.anyBefore(before) {
		return
	}
	clients := f.CountByLogin()
	f.found.mu.Lock()
	defer f.found.mu.Unlock()
	n := len(f.found.users)
	maps.DeleteFunc(f.found.users, func(k learnedKey, u *learnedUser) bool {
		if clients[pool.Scope{User: k.user, Database: k.database}] > 0 {
			u.used = loop.Now()
			return false
		}
		return u.used < before
	})
	if len(f.found.users) < n {
		f.updatePoolsLocked(f.cfg.Load())
	}
}
