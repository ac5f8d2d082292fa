package main

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/pgebb/pgebb/admin"
	"github.com/pgebb/pgebb/backend"
	"github.com/pgebb/pgebb/config"
	"github.com/pgebb/pgebb/pool"
)

// This file is what the console makes the pooler do.

var _ admin.Control = (*pooler)(nil)

// instance is what tells this process from others.
func instance() string {
	if id := os.Getenv("NODE_ID"); id != "" {
		return id
	}
	b := make([]byte, 4)
	_, _ = rand.Read(b) // never fails
	return hex.EncodeToString(b)
}

// Reload reads the configuration again. If it is refused, nothing changes. Both are
// logged.
func (p *pooler) Reload() (notices []string, err error) {
	p.reloading.Lock()
	defer p.reloading.Unlock()
	cfg, problems := config.Load(p.src)
	if err := problems.Err(); err != nil {
		p.log.Error("reload failed; nothing has changed", "error", err)
		return nil, err
	}
	for _, problem := range problems {
		p.log.Warn(problem.String())
		notices = append(notices, problem.String())
	}
	old := p.cfg.Load()
	change := config.Diff(old, cfg)
	if len(change.Restart) > 0 {
		p.log.Warn("these keys change at a restart only", "keys", change.Restart)
		notices = append(notices, "these keys change at a restart only: "+strings.Join(change.Restart, ", "))
	}
	if set := old.WasSet(); len(set) > 0 {
		p.log.Warn("what was SET on the console no longer holds", "keys", set)
		notices = append(notices, "what was SET no longer holds: "+strings.Join(set, ", "))
	}
	if err := p.logQueries(cfg); err != nil {
		p.log.Error("the query log goes on where it was", "error", err)
		notices = append(notices, "the query log goes on where it was: "+err.Error())
	}
	p.apply(cfg)
	p.log.Info("configuration reloaded", "pools", len(cfg.Pools()), "new", len(change.New), "changed", len(change.Changed), "gone", len(change.Gone))
	return notices, nil
}

// apply makes a configuration the one that everything goes by. reloading must be held.
func (p *pooler) apply(cfg *config.Config) {
	warmParser(cfg)
	p.cfg.Store(cfg)
	p.frontend.Update(cfg)
	p.judge.SetLimits(judgeLimits(cfg, p.budget))
}

// logQueries has the query log go where a configuration says.
func (p *pooler) logQueries(cfg *config.Config) error {
	return p.queries.Configure(cfg.General.QueryLog, cfg.General.QueryLogStdout)
}

// endQueryLog writes what waits in it.
func (p *pooler) endQueryLog() {
	if err := p.queries.Close(); err != nil {
		p.log.Warn("lines of the query log are lost", "error", err)
	}
}

// Set implements [admin.Control].
func (p *pooler) Set(key, value string) error {
	return p.change("SET", key, func(c *config.Config) (*config.Config, error) { return c.Set(key, value) })
}

// Reset implements [admin.Control].
func (p *pooler) Reset(key string) error {
	return p.change("RESET", key, func(c *config.Config) (*config.Config, error) { return c.Reset(key) })
}

func (p *pooler) change(what, key string, f func(*config.Config) (*config.Config, error)) error {
	p.reloading.Lock()
	defer p.reloading.Unlock()
	cfg, err := f(p.cfg.Load())
	if err != nil {
		return err
	}
	if err := p.logQueries(cfg); err != nil {
		return err
	}
	p.apply(cfg)
	p.log.Info("configuration changed on the console", "command", what, "key", key)
	return nil
}

// Shutdown implements [admin.Control].
func (p *pooler) Shutdown(how admin.Shutdown) {
	select {
	case p.shutdown <- how:
	default:
	}
}

// Pause implements [admin.Control].
func (p *pooler) Pause(s admin.Scope) error {
	return p.registry.Pause(pool.Scope(s))
}

// Maintain implements [admin.Control].
func (p *pooler) Maintain(s admin.Scope, on bool) error {
	if on {
		return p.registry.Maintain(pool.Scope(s))
	}
	return p.registry.EndMaintenance(pool.Scope(s))
}

// Resume implements [admin.Control].
func (p *pooler) Resume(s admin.Scope) error {
	if err := p.registry.Resume(pool.Scope(s)); err != nil {
		return err
	}
	return p.registry.EndMaintenance(pool.Scope(s))
}

// Reconnect implements [admin.Control].
func (p *pooler) Reconnect(s admin.Scope) error {
	return p.registry.Reconnect(pool.Scope(s))
}

// Outdated implements [admin.Control].
func (p *pooler) Outdated(s admin.Scope) (int, error) { return p.registry.Outdated(pool.Scope(s)) }

// InUse implements [admin.Control]. Idle servers of a paused pool are closed, so what is
// left is in use, or about to be closed.
func (p *pooler) InUse(s admin.Scope) (int, error) { return p.registry.Total(pool.Scope(s)) }

// Kill implements [admin.Control].
func (p *pooler) Kill(s admin.Scope) error {
	if err := p.registry.Pause(pool.Scope(s)); err != nil {
		return err
	}
	n := p.frontend.Kill(pool.Scope(s))
	p.log.Info("clients closed by KILL", "clients", n)
	return nil
}

// KillClient implements [admin.Control].
func (p *pooler) KillClient(id uint64) bool { return p.frontend.KillClient(id) }

// Disable implements [admin.Control].
func (p *pooler) Disable(database string, on bool) error {
	if !p.cfg.Load().HasDatabase(database) && on {
		return pool.ErrNoPool{Scope: pool.Scope{Database: database}}
	}
	p.frontend.Disable(database, on)
	return nil
}

// ResetPrepared implements [admin.Control].
func (p *pooler) ResetPrepared() int { return p.registry.Registry().Reset() }

// Probe implements [admin.Control]. The URL is never shown: it has a password in it.
func (p *pooler) Probe(ctx context.Context, url string) (time.Duration, error) {
	cfg, problems := config.Load(config.Source{DatabaseURLs: []string{url}})
	for _, problem := range problems {
		if !problem.Warning {
			return 0, errors.New("PROBE: " + problem.Message)
		}
	}
	started := time.Now()
	session, err := backend.Connect(ctx, p.registry.Target(&cfg.Pools()[0]))
	if err != nil {
		return 0, fmt.Errorf("PROBE: %w", err)
	}
	took := time.Since(started)
	session.Conn.Close()
	return took, nil
}
