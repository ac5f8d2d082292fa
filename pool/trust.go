package pool

import (
	"bytes"
	"context"

	"github.com/pgebb/pgebb/backend"
	"github.com/pgebb/pgebb/config"
)

// This file is about credentials that are in no file.

// Trust has servers for a login of clients log in with what the login of one of them has
// left, where no password is configured.
func (r *Registry) Trust(user, database string, keys *backend.Keys) {
	l := login{user, database}
	r.mu.RLock()
	known := r.keys[l]
	r.mu.RUnlock()
	if known != nil && bytes.Equal(known.ClientKey, keys.ClientKey) && known.Verifier.String() == keys.Verifier.String() {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.clusters[l] != nil {
		r.keys[l] = keys
	}
}

// keysOf are the keys for a pool's servers, nil if there are none or they would be another
// user's.
func (r *Registry) keysOf(c *config.Pool) *backend.Keys {
	if c.ServerUser != c.User || c.External != nil {
		return nil
	}
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.keys[login{c.User, c.Database}]
}

// Try logs in as somebody and leaves again: Postgres is to judge a password. When it says
// no, the error wraps a [backend.ServerError]. It waits for its turn as all who connect do.
func (r *Registry) Try(ctx context.Context, c *config.Pool) error {
	select {
	case r.dialSlots <- struct{}{}:
		defer func() { <-r.dialSlots }()
	case <-ctx.Done():
		return ctx.Err()
	}
	t := r.Target(c)
	s, _, err := r.logIn(ctx, c, &t)
	if err != nil {
		return err
	}
	s.Leave()
	return nil
}

// LookUp runs auth_query for a user at the host of a pool.
func (r *Registry) LookUp(ctx context.Context, c *config.Pool, query, user string) ([][]byte, error) {
	t := r.Target(c)
	if c.External != nil {
		if _, err := r.entitle(ctx, c, &t); err != nil {
			return nil, err
		}
	}
	t.Params = []backend.Param{{Name: "search_path", Value: "pg_catalog"}, {Name: "application_name", Value: "pgebb"}}
	return backend.LookUp(ctx, t, query, user)
}
