package pool

import (
	"time"

	"github.com/pgebb/pgebb/config"
	"github.com/pgebb/pgebb/internal/loop"
)

// Ban keeps reads from a host; writes go to the primary whether it is banned or not.
type Ban struct {
	Reason string
	Manual bool          // an operator has asked for it: it ends when an operator says so
	Since  time.Duration // in [loop.Now]
	Until  time.Duration // in [loop.Now], at least; 0 if it does not end by itself at a time
	lag    bool          // it ends when the replica has caught up
}

// Ban bans the pool until [Pool.Unban], because an operator wants it.
func (p *Pool) Ban(reason string) {
	p.setBan(&Ban{Reason: reason, Manual: true, Since: loop.Now()})
}

// Unban ends any ban; false if there was none.
func (p *Pool) Unban() bool { return p.lift(func(*Ban) bool { return true }) }

// banFor bans a replica that others can stand in for, unless bans are off.
func (p *Pool) banFor(reason string, lag bool) {
	c := &p.Settings().Health
	if c.BanTimeout == 0 || p.Role() != config.Replica || !p.cluster.others(p) || p.banned.Load() {
		return
	}
	b := &Ban{Reason: reason, Since: loop.Now(), lag: lag}
	if !lag && c.BanTimeout != config.Off {
		b.Until = b.Since + c.BanTimeout
	}
	p.setBan(b)
}

func (p *Pool) setBan(b *Ban) {
	p.mu.Lock()
	p.ban = b
	p.banned.Store(true)
	p.mu.Unlock()
	c := p.Settings()
	p.registry.log.Warn("host banned", "user", c.User, "database", c.Database, "host", c.Host, "port", c.Port, "reason", b.Reason, "manual", b.Manual)
	if p.cluster.Split() {
		p.moveWaiters(false)
	}
}

// forgive ends a ban that no operator has asked for.
func (p *Pool) forgive() bool {
	return p.banned.Load() && p.lift(func(b *Ban) bool { return !b.Manual })
}

// caughtUp ends a ban for being behind.
func (p *Pool) caughtUp() bool {
	return p.banned.Load() && p.lift(func(b *Ban) bool { return b.lag })
}

// lift ends a ban if it is one of those.
func (p *Pool) lift(those func(*Ban) bool) bool {
	p.mu.Lock()
	b := p.ban
	if b == nil || !those(b) {
		p.mu.Unlock()
		return false
	}
	p.ban = nil
	p.banned.Store(false)
	p.mu.Unlock()
	c := p.Settings()
	p.registry.log.Info("host is no longer banned", "user", c.User, "database", c.Database, "host", c.Host, "port", c.Port, "reason", b.Reason)
	return true
}

// expire ends a ban whose time is over, if the host can be reached again.
func (p *Pool) expire(now time.Duration) {
	if p.banned.Load() && !p.down.Load() {
		p.lift(func(b *Ban) bool { return b.Until > 0 && now >= b.Until })
	}
}
