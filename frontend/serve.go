package frontend

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"strings"
	"time"

	"github.com/pgebb/pgebb/backend"
	"github.com/pgebb/pgebb/config"
	"github.com/pgebb/pgebb/internal/loop"
	"github.com/pgebb/pgebb/pool"
)

// This file is what a login goes through, on a loop (see arrival) or in a goroutine of its own.

// serve logs a connection in and hands it to a loop. It runs in a goroutine of its
// own, which ends within client_login_timeout unless it serves the console.
func (f *Frontend) serve(conn net.Conn, accepted time.Duration) {
	f.serving(conn, accepted, func() {
		r := &reception{conn: conn, encryption: f.encryption.Load()}
		st, err := r.readStartup()
		conn = r.conn
		if err != nil {
			f.refuse(conn, st, err)
			return
		}
		st.shield = r.shield
		f.serveStarted(conn, st, accepted)
	})
}

// serveFrom is serve for a connection whose start-up was read already.
func (f *Frontend) serveFrom(conn net.Conn, st *startup, accepted time.Duration) {
	f.serving(conn, accepted, func() { f.serveStarted(conn, st, accepted) })
}

// serving is what all goroutines of logins do.
func (f *Frontend) serving(conn net.Conn, accepted time.Duration, do func()) {
	if !f.track(conn) {
		conn.Close()
		return
	}
	defer f.untrack(conn)
	if t := f.cfg.Load().General.ClientLoginTimeout; t != config.Off {
		_ = conn.SetDeadline(loop.Time(accepted).Add(t))
	}
	do()
}

func (f *Frontend) serveStarted(conn net.Conn, st *startup, accepted time.Duration) {
	if st.Cancel != nil {
		f.cancel(st.Cancel.PID, st.Cancel.Secret)
		conn.Close() // nothing is ever written to it
		return
	}
	f.enter(conn, st, accepted)
}

// enter logs a client in that has said who it is.
func (f *Frontend) enter(conn net.Conn, st *startup, accepted time.Duration) {
	cfg := f.cfg.Load()
	if cfg.ClientTLS.Required && st.shield == nil && !isUnix(conn) {
		f.refuse(conn, st, errTLSRequired())
		return
	}
	if st.Database != cfg.Admin.Name { // the operator is needed most then
		if e := f.admits(); e != nil {
			f.refuse(conn, st, e)
			return
		}
	}
	if err := f.authenticate(conn, st, accepted); err != nil {
		f.refuse(conn, st, err)
		return
	}
	_ = conn.SetDeadline(time.Time{})
	if cfg.IsConsole(st.Database) {
		f.serveConsole(conn, st)
		return
	}
	if f.disabled.has(st.Database) {
		f.refuse(conn, st, errDisabled(st.Database))
		return
	}
	p := f.registry.Find(st.User, st.Database)
	if p == nil {
		e := errNoDatabase(st.Database)
		if cfg.HasDatabase(st.Database) {
			e = errNotPermitted(st.User, st.Database)
		}
		f.refuse(conn, st, e)
		return
	}
	f.handOver(conn, st, p, accepted)
}

func (f *Frontend) serveConsole(conn net.Conn, st *startup) {
	defer conn.Close()
	if err := f.console.Serve(conn, st.Database, st.User == f.cfg.Load().Admin.User); err != nil {
		f.log.Info("console connection ended", "user", st.User, "error", err)
	}
}

// refuse ends a login.
func (f *Frontend) refuse(conn net.Conn, st *startup, err error) {
	defer conn.Close()
	user, database := "", ""
	if st != nil {
		user, database = st.User, st.Database
	}
	level := slog.LevelInfo
	if errors.Is(err, io.EOF) {
		// Who only looks if the port is open, or wants to be asked for a password before
		// it asks its user for one, is nothing to write about; Postgres does not either.
		level = slog.LevelDebug
	}
	attrs := []any{"user", user, "database", database, "client", remote(conn), "error", err}
	var e *Error
	if errors.As(err, &e) {
		f.errors.Count([]byte(e.Code))
		attrs = append(attrs, f.refer(e)...)
	}
	f.log.Log(context.Background(), level, "login failed", attrs...)
	if e != nil {
		writeError(conn, e)
	}
}

// refer gives an error that has something for the log an id, tells the client of it, and
// returns what the log has to say.
func (f *Frontend) refer(e *Error) []any {
	switch {
	case e.Private == "" && e.Cause == "":
		return nil
	case e.Private == "":
		return []any{"reason", e.Cause}
	}
	id := fmt.Sprintf("%s-%d", f.run, f.references.Add(1))
	e.Detail = strings.TrimSpace(e.Detail + " The log of the pooler says more, under error_id " + id + ".")
	return []any{"error_id", id, "reason", e.Private}
}

// handOver makes a logged-in connection a client on a loop. accepted is when its connection
// was, in loop.Now.
func (f *Frontend) handOver(conn net.Conn, st *startup, p *pool.Pool, accepted time.Duration) {
	params, role, e := takeRole(st.Params)
	if e != nil {
		f.refuse(conn, st, e)
		return
	}
	c := &Client{f: f, pool: p, id: f.ids.Add(1), minor: uint8(st.Minor), role: role}
	if !f.keys.add(c) {
		f.refuse(conn, st, errTooManyClients())
		return
	}
	if f.cfg.Load().General.LogConnections {
		f.log.Info("client connected", "client_id", c.id, "user", st.User, "database", st.Database, "client", remote(conn))
	}
	if a, ok := conn.(*arrival); ok {
		a.becomes = func(l *loop.Loop) {
			l.Become(&a.Conn, &c.Conn, c)
			l.Unread(&c.Conn, a.in)
			c.settleIn(l, params, accepted)
		}
		return
	}
	if err := c.Init(conn, c); err != nil {
		f.keys.remove(c)
		f.log.Warn("client could not be put on a loop", "error", err)
		return
	}
	l := f.loops.Pick()
	l.Post(func() {
		if err := l.Add(&c.Conn); err != nil {
			f.keys.remove(c)
			c.Close()
			f.log.Warn("client could not be put on a loop", "error", err)
			return
		}
		if p, ok := conn.(*prefixed); ok {
			l.Unread(&c.Conn, p.rest)
		}
		c.settleIn(l, params, accepted)
	})
}

// settleIn begins the session of a client that has come to its loop.
func (c *Client) settleIn(l *loop.Loop, params []backend.Param, accepted time.Duration) {
	c.f.held[l.ID()].arrive(c)
	c.waiter = pool.Waiter{Grantee: c, Loop: l}
	c.totals.connected = accepted
	c.begin(params)
}
