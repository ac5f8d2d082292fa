package frontend

import (
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/pgebb/pgebb/cache"
	"github.com/pgebb/pgebb/config"
	"github.com/pgebb/pgebb/internal/loop"
	"github.com/pgebb/pgebb/internal/scram"
)

const (
	// maxLookUps is how many passwords are looked up at the same time, each with a
	// connection of its own.
	maxLookUps = 8

	// freshFor is for how long what was looked up is not looked up again, not even after a
	// login that has failed.
	freshFor = time.Second
)

// lookUps are the credentials of users that Postgres was asked for. It is safe for
// concurrent use.
type lookUps struct {
	cache *cache.LRU[lookUpKey, *lookUp]
	slots chan struct{}

	mu      sync.Mutex
	waiting map[lookUpKey]chan struct{} // look-ups under way; closed at their end; guarded by mu
}

// lookUpKey is where was looked for whom.
type lookUpKey struct {
	host, database string
	port           int
	user, query    string
}

// lookUp is what was found.
type lookUp struct {
	cred    *config.Credential // nil if there is no such user, or one without a password
	expires time.Time          // zero for never
	at      time.Duration      // when, in [loop.Now]
}

func newLookUps(limit int) *lookUps {
	return &lookUps{
		cache: cache.NewLRU(int64(limit), func(k lookUpKey, l *lookUp) int64 {
			n := cache.EntryOverhead + len(k.host) + len(k.database) + len(k.user) + len(k.query) + 160
			if l.cred != nil {
				n += 100 + len(l.cred.PasswordHash)
				for _, p := range l.cred.Passwords {
					n += 16 + len(p)
				}
			}
			return int64(n)
		}),
		slots: make(chan struct{}, maxLookUps), waiting: make(map[lookUpKey]chan struct{}),
	}
}

// lookUpPool is where users are looked up, as the user that does that.
func lookUpPool(cfg *config.Config, database string) (p config.Pool, key lookUpKey, ok bool) {
	g := &cfg.General
	if g.AuthDBName != "" {
		database = g.AuthDBName
	}
	p, ok = cfg.WithLearned([]config.Learned{{User: g.AuthUser, Database: database, Password: g.AuthPassword}}).FindPool(g.AuthUser, database)
	if !ok {
		return p, key, false
	}
	switch {
	case g.AuthPassword != "":
		p.ServerUser, p.ServerPasswords, p.External = g.AuthUser, []string{g.AuthPassword}, nil
	case p.External == nil: // otherwise auth_user logs in as its own servers do
		p.ServerUser, p.ServerPasswords = g.AuthUser, nil
	}
	query := g.AuthQuery
	if query == "" {
		query = config.DefaultAuthQuery
	}
	return p, lookUpKey{host: p.Host, port: p.Port, database: p.ServerDatabase, query: query}, true
}

// lookUp implements outside.
func (f *Frontend) lookUp(cfg *config.Config, user, database string) (*config.Credential, error) {
	p, key, ok := lookUpPool(cfg, database)
	if !ok {
		return nil, nil
	}
	key.user = user
	l, err := f.lookUps.get(key, cfg.General.AuthQueryCacheTTL, func() (*lookUp, error) {
		ctx, cancel := f.serverContext(&p)
		defer cancel()
		row, err := f.registry.LookUp(ctx, &p, key.query, user)
		if err != nil {
			return nil, err
		}
		return newLookUp(row, user)
	})
	if err != nil {
		return nil, errLookUp(err)
	}
	if !l.expires.IsZero() && !time.Now().Before(l.expires) {
		return nil, nil
	}
	return l.cred, nil
}

// forget implements outside.
func (f *Frontend) forget(cfg *config.Config, user, database string) {
	_, key, ok := lookUpPool(cfg, database)
	key.user = user
	if l, found := f.lookUps.cache.Get(key); ok && found && loop.Now()-l.at > freshFor {
		f.lookUps.cache.Remove(key)
	}
}

// get returns what is known, or looks it up; who asks for the same meanwhile waits for
// that.
func (u *lookUps) get(key lookUpKey, ttl time.Duration, look func() (*lookUp, error)) (*lookUp, error) {
	for {
		if l := u.fresh(key, ttl); l != nil {
			return l, nil
		}
		u.mu.Lock()
		under := u.waiting[key]
		if under == nil {
			// It may have been found since.
			if l := u.fresh(key, ttl); l != nil {
				u.mu.Unlock()
				return l, nil
			}
			done := make(chan struct{})
			u.waiting[key] = done
			u.mu.Unlock()
			l, err := u.look(key, look)
			u.mu.Lock()
			delete(u.waiting, key)
			u.mu.Unlock()
			close(done)
			return l, err
		}
		u.mu.Unlock()
		<-under
		if ttl <= 0 {
			return u.look(key, look)
		}
	}
}

// fresh is what is known and not older than ttl; nil if nothing is.
func (u *lookUps) fresh(key lookUpKey, ttl time.Duration) *lookUp {
	if l, ok := u.cache.Get(key); ok && loop.Now()-l.at < ttl {
		return l
	}
	return nil
}

func (u *lookUps) look(key lookUpKey, look func() (*lookUp, error)) (*lookUp, error) {
	u.slots <- struct{}{}
	defer func() { <-u.slots }()
	l, err := look()
	if err != nil {
		return nil, err
	}
	l.at = loop.Now()
	u.cache.Put(key, l)
	return l, nil
}

// newLookUp reads a row of auth_query.
func newLookUp(row [][]byte, user string) (*lookUp, error) {
	l := &lookUp{}
	if row == nil {
		return l, nil
	}
	if len(row) != 2 && len(row) != 3 {
		return nil, fmt.Errorf("auth_query returns %d columns: it must be the name, the password or its hash and, if there is a third, when that expires", len(row))
	}
	if string(row[0]) != user {
		return nil, errors.New("auth_query returns another user than was asked for")
	}
	if len(row) == 3 && row[2] != nil {
		seconds, err := strconv.ParseFloat(string(row[2]), 64)
		if err != nil {
			return nil, errors.New("the third column that auth_query returns is no number of seconds")
		}
		const never = 1 << 40 // some 35,000 years; infinity is above it
		if seconds < never {
			l.expires = time.UnixMilli(int64(max(seconds, 1) * 1000))
		}
	}
	switch secret := string(row[1]); {
	case secret == "":
		return l, nil
	case isHash(secret):
		l.cred = &config.Credential{PasswordHash: secret, Certificate: true}
	default:
		l.cred = &config.Credential{Passwords: []string{secret}, Certificate: true}
	}
	return l, nil
}

// isHash reports whether a secret of Postgres's is a hash of a password.
func isHash(secret string) bool {
	_, err := scram.Parse(secret)
	return err == nil || config.IsMD5(secret)
}
