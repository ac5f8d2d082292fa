package frontend

import (
	"context"
	"crypto/hmac"
	"errors"
	"net"

	"github.com/pgebb/pgebb/backend"
	"github.com/pgebb/pgebb/config"
	"github.com/pgebb/pgebb/internal/scram"
)

// passes reports whether the client is asked for its password in clear text, to pass it
// on. Without TLS only who is on this machine is, unless that is allowed.
func (a *Authenticator) passes(cfg *config.Config, conn net.Conn, st *startup, c claim) bool {
	p := cfg.General.PassthroughAuth
	return a.outside != nil && !c.console && p != config.PassNothing && (st.shield != nil || p.Plain() || isUnix(conn))
}

// passThrough asks for a password. One that is known decides; otherwise Postgres does, and
// only what Postgres accepts is kept.
func (a *Authenticator) passThrough(l *login, current *authConfig, st *startup, c claim) error {
	if err := l.request(requestCleartext, nil); err != nil {
		return err
	}
	given, err := l.password()
	if err != nil {
		return err
	}
	password, known := a.outside.learned(st.User, st.Database)
	ok := false
	switch {
	case known:
		ok = hmac.Equal([]byte(given), []byte(password))
	case c.known && (len(c.cred.Passwords) > 0 || c.cred.PasswordHash != ""):
		known = true
		if ok, err = l.isPassword(c.cred, given, a.mock(st.User)); err != nil {
			return err
		}
	}
	if ok {
		return nil
	}
	if known && !current.cfg.General.PassthroughAuth.AllowChange() {
		return errAuthFailed(st.User, "the password is another than the known one, and passthrough_auth allows no change")
	}
	if ok, err = a.outside.judge(current.cfg, st.User, st.Database, given); err != nil {
		return err
	}
	if !ok {
		return errAuthFailed(st.User, "Postgres does not accept the password")
	}
	return a.outside.learn(config.Learned{User: st.User, Database: st.Database, Password: given})
}

// judge implements outside.
func (f *Frontend) judge(cfg *config.Config, user, database, password string) (bool, error) {
	p, ok := cfg.WithLearned([]config.Learned{{User: user, Database: database, Password: password}}).FindPool(user, database)
	if !ok {
		return false, nil // there is no such database, which is told only to who is in
	}
	p.ServerUser, p.ServerPasswords, p.External = user, []string{password}, nil
	ctx, cancel := f.serverContext(&p)
	defer cancel()
	err := f.registry.Try(ctx, &p)
	var said *backend.ServerError
	switch {
	case err == nil:
		return true, nil
	case errors.As(err, &said) && (said.Code() == "28P01" || said.Code() == "28000"):
		return false, nil
	case errors.As(err, &said):
		return false, errSaid(said)
	}
	return false, errServerUnavailable(err.Error())
}

// serverContext is for something that is asked of a server during a login.
func (f *Frontend) serverContext(p *config.Pool) (context.Context, context.CancelFunc) {
	if p.ConnectTimeout == config.Off {
		return context.WithCancel(f.ctx)
	}
	return context.WithTimeout(f.ctx, p.ConnectTimeout)
}

// fromVault implements outside.
func (f *Frontend) fromVault(cfg *config.Config, user string, cred config.Credential) (password string, rejected func(), err error) {
	ctx, cancel := f.serverContext(&config.Pool{ConnectTimeout: cfg.General.ConnectTimeout})
	defer cancel()
	return f.registry.ClientPassword(ctx, cfg, user, cred)
}

// trust implements outside.
func (f *Frontend) trust(user, database string, keys *scram.Keys) {
	f.registry.Trust(user, database, keys)
}
