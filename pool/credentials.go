package pool

import (
	"context"
	"fmt"
	"time"

	"github.com/pgebb/pgebb/backend"
	"github.com/pgebb/pgebb/config"
	"github.com/pgebb/pgebb/internal/secrets"
)

// This file is about credentials that are in no file, but fetched from somewhere: of servers,
// and of clients.

// ErrNoCredentials is wrapped when they could not be fetched, and there is no use in trying
// again soon.
var ErrNoCredentials = secrets.ErrRefused

// wantOf is what a pool with External set asks for.
func wantOf(c *config.Pool) secrets.Want {
	return secrets.Want{External: *c.External, User: c.ServerUser, Host: c.Host, Port: c.Port}
}

// retainSecrets forgets what was fetched for whom there is not any more.
func (r *Registry) retainSecrets(cfg *config.Config) {
	var wanted []secrets.Want
	for _, c := range cfg.Pools() {
		if c.External != nil {
			wanted = append(wanted, wantOf(&c))
		}
	}
	cfg.EachLogin(func(user string, cred config.Credential) {
		if cred.VaultPath != "" {
			wanted = append(wanted, wantOfClient(cfg, user, cred))
		}
	})
	r.secrets.Retain(wanted)
}

// wantOfClient asks for the password that the clients of a user have.
func wantOfClient(cfg *config.Config, user string, cred config.Credential) secrets.Want {
	return secrets.Want{User: user, External: config.External{Method: config.VaultStatic, Path: cred.VaultPath, Vault: cfg.Vault}}
}

// ClientPassword is the password that Vault has for the clients of a user. rejected is to be
// called if a client has another: Vault may have changed it before its time.
func (r *Registry) ClientPassword(ctx context.Context, cfg *config.Config, user string, cred config.Credential) (password string, rejected func(), err error) {
	w := wantOfClient(cfg, user, cred)
	s, err := r.secrets.Get(ctx, w)
	return s.Password, func() { r.secrets.Reject(w, s) }, err
}

// prepare fetches the credentials for a connection, if they are to be fetched and are not
// there, within connect_timeout.
func (p *Pool) prepare() error {
	c := p.Settings()
	if c.External == nil {
		return nil
	}
	ctx, cancel := p.registry.ctx, context.CancelFunc(func() {})
	if c.ConnectTimeout != config.Off {
		ctx, cancel = context.WithTimeout(ctx, c.ConnectTimeout)
	}
	defer cancel()
	t := p.registry.Target(c)
	if _, err := p.registry.entitle(ctx, c, &t); err != nil {
		return fmt.Errorf("connecting to %s as %q: %w", t.Address, t.User, err)
	}
	return nil
}

// entitle gives a target the credentials that a pool with External set has.
func (r *Registry) entitle(ctx context.Context, c *config.Pool, t *backend.Target) (secrets.Secret, error) {
	s, err := r.secrets.Get(ctx, wantOf(c))
	if err != nil {
		return s, fmt.Errorf("getting credentials (server_auth is %s): %w", c.External.Method, err)
	}
	t.User, t.Passwords, t.Sealed = c.ServerUser, []string{s.Password}, true
	if s.User != "" {
		t.User = s.User
	}
	if c.External.Method == config.RDSIAM || c.External.Method == config.AzureToken {
		t.TLS = t.TLS.Insisting() // it is asked for in clear text
	}
	return s, nil
}

// logIn connects. Credentials that were kept and that the server does not take are fetched
// anew once. What they are is not left in the target. until is when the server must be gone,
// zero if it can stay.
func (r *Registry) logIn(ctx context.Context, c *config.Pool, t *backend.Target) (session *backend.Session, until time.Time, err error) {
	if c.External == nil {
		session, err = backend.Connect(ctx, *t)
		return session, until, err
	}
	for again := true; ; again = false {
		s, err := r.entitle(ctx, c, t)
		if err != nil {
			return nil, until, err
		}
		session, err := backend.Connect(ctx, *t)
		t.Passwords = nil
		if err == nil {
			return session, s.Until, nil
		}
		if !again || !backend.NotLetIn(err) || !r.secrets.Reject(wantOf(c), s) {
			return nil, until, err
		}
		r.log.Info("Postgres does not take the credentials that were fetched before; they are fetched again", "user", c.User, "database", c.Database, "error", err)
	}
}
