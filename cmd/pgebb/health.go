package main

import (
	"time"

	"github.com/pgebb/pgebb/admin"
	"github.com/pgebb/pgebb/internal/loop"
	"github.com/pgebb/pgebb/pool"
)

// This file is what the console shows of hosts and does to them.

var _ admin.Health = (*pooler)(nil)

// Bans implements [admin.Health].
func (p *pooler) Bans() []admin.BanRow {
	var rows []admin.BanRow
	for _, pl := range p.registry.Pools() {
		b := pl.Status().Ban
		if b == nil {
			continue
		}
		left := time.Duration(-1)
		if b.Until > 0 {
			left = max(b.Until-loop.Now(), 0)
		}
		rows = append(rows, admin.BanRow{ID: pl.ID, Place: place(pl.Settings()), Reason: b.Reason, Left: left})
	}
	return rows
}

// Replication implements [admin.Health].
func (p *pooler) Replication() []admin.ReplicationRow {
	var rows []admin.ReplicationRow
	for _, pl := range p.registry.Pools() {
		x, known := p.registry.Replication(pl)
		rows = append(rows, admin.ReplicationRow{
			ID: pl.ID, Place: place(pl.Settings()), Known: known, Recovering: x.Recovering, LSN: x.LSN, Lag: x.Lag, Age: x.Age,
		})
	}
	return rows
}

// Ban implements [admin.Health].
func (p *pooler) Ban(id uint64) int {
	return p.onPools(id, func(pl *pool.Pool) { pl.Ban("banned on the console") })
}

// Unban implements [admin.Health].
func (p *pooler) Unban(id uint64) int { return p.onPools(id, func(pl *pool.Pool) { pl.Unban() }) }

// CheckNow implements [admin.Health].
func (p *pooler) CheckNow(id uint64) int { return p.onPools(id, (*pool.Pool).CheckNow) }

func (p *pooler) onPools(id uint64, do func(*pool.Pool)) (n int) {
	for _, pl := range p.registry.Pools() {
		if id == 0 || pl.ID == id {
			do(pl)
			n++
		}
	}
	return n
}
