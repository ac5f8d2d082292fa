package main

import (
	"time"

	"github.com/pgebb/pgebb/admin"
	"github.com/pgebb/pgebb/backend"
	"github.com/pgebb/pgebb/config"
	"github.com/pgebb/pgebb/frontend"
	"github.com/pgebb/pgebb/internal/loop"
	"github.com/pgebb/pgebb/pool"
)

// newConsole makes the console of the pooler, which gets what it shows from the
// methods of this file.
func (p *pooler) newConsole() *admin.Console {
	return admin.New(admin.Sources{
		Pools: p, Clients: p, Servers: p, Stats: p, Lists: p, Config: p, Memory: p, Control: p, Version: version(),
		StatsPeriod: func() time.Duration { return p.cfg.Load().General.StatsPeriod },
	})
}

func place(c *config.Pool) admin.Place {
	return admin.Place{Database: c.Database, User: c.User, Addr: c.Host, Port: c.Port, Role: c.Role}
}

// Pools implements the console's source of SHOW POOLS.
func (p *pooler) Pools() []admin.PoolRow {
	inTransaction := map[uint64]int{}
	p.registry.EachServer(func(pl *pool.Pool, s *backend.Server) {
		if s.State() == backend.StateIdleInTransaction {
			inTransaction[pl.ID]++
		}
	})
	var rows []admin.PoolRow
	for _, pl := range p.registry.Pools() {
		s, c := pl.Status(), pl.Settings()
		n := p.registry.Counters(pl)
		idleInXact := min(inTransaction[pl.ID], s.Total-s.Idle)
		rows = append(rows, admin.PoolRow{
			ID: pl.ID, Place: place(c), Waiting: s.Waiting, Idle: s.Idle, Active: s.Total - s.Idle - idleInXact, IdleInXact: idleInXact,
			Total: s.Total, MaxWait: s.MaxWait, Mode: c.Mode.String(), Healthy: !s.Failing,
			Errors: n.ConnectFailures + n.Lost + n.CheckoutTimeouts, OutOfSync: n.OutOfSync, Reclosed: n.ForceClosed,
			Resynced: n.Resynced, Online: true,
		})
	}
	return rows
}

// Clients implements the console's source of SHOW CLIENTS.
func (p *pooler) Clients() []admin.ClientRow {
	var rows []admin.ClientRow
	for _, c := range p.frontend.Clients() {
		rows = append(rows, admin.ClientRow{
			ID: c.ID, User: c.User, Database: c.Database, Addr: c.Addr, Port: c.Port, State: c.State,
			Connected: loop.Time(c.Connected), LastRequest: loop.Time(c.LastChange), Queries: c.Queries, Transactions: c.Transactions,
			WaitTime: c.Wait, QueryTime: c.QueryTime, TransactTime: c.TransactionTime, Received: c.Received, Sent: c.Sent, Errors: c.Errors,
			ApplicationName: c.ApplicationName, Locked: c.Locked, PreparedStatements: c.PreparedStatements,
		})
	}
	return rows
}

// Servers implements the console's source of SHOW SERVERS.
func (p *pooler) Servers() []admin.ServerRow {
	var rows []admin.ServerRow
	p.registry.EachServer(func(pl *pool.Pool, s *backend.Server) {
		c := pl.Settings()
		name, _ := s.Params().Get("application_name")
		rows = append(rows, admin.ServerRow{
			PoolID: pl.ID, Database: s.Target.Database, User: s.Target.User, Addr: c.Host, Port: c.Port, State: s.State(),
			Connected: loop.Time(s.Born), Request: loop.Time(s.Since), PID: s.PID, ClientID: s.Holder(),
			Transactions: s.Totals.Transactions, Queries: s.Totals.Queries, Rollbacks: s.Totals.Rollbacks, Errors: s.Totals.Errors,
			Received: s.Totals.Received, Sent: s.Totals.Sent, LastSent: s.Totals.LastSent, LastReceived: s.Totals.LastReceived,
			ApplicationName: name, PreparedStatements: s.Statements(),
		})
	})
	return rows
}

// Stats implements the console's source of SHOW STATS.
func (p *pooler) Stats() []admin.StatsRow {
	var rows []admin.StatsRow
	for _, pl := range p.registry.Pools() {
		n := p.registry.Counters(pl)
		rows = append(rows, admin.StatsRow{ID: pl.ID, Place: place(pl.Settings()), Total: admin.Counters{
			Transactions: n.Transactions, Queries: n.Queries, Assignments: n.Checkouts, Received: n.Received, Sent: n.Sent,
			TransactionTime: time.Duration(n.TransactionTime), IdleTransactionTime: time.Duration(n.IdleTransactionTime),
			QueryTime: time.Duration(n.QueryTime), WaitTime: time.Duration(n.WaitTime),
			Parses: n.ParseMessages, Binds: n.BindMessages, Closes: n.CloseMessages,
			Errors: n.Errors, Cleaned: n.Cleaned, Rollbacks: n.Rollbacks, ConnectTime: time.Duration(n.ConnectTime), Connects: n.Connects,
			Reads: n.Reads, Writes: n.Writes, AuthAttempts: n.AuthAttempts,
			RowsInserted: n.RowsInserted, RowsUpdated: n.RowsUpdated, RowsDeleted: n.RowsDeleted,
		}})
	}
	return rows
}

// Lists implements the console's source of SHOW LISTS.
func (p *pooler) Lists() admin.Lists {
	cfg := p.cfg.Load()
	l := admin.Lists{Databases: len(cfg.Databases), Users: len(cfg.Users), UsedClients: p.frontend.Count()}
	for _, pl := range p.registry.Pools() {
		l.Pools++
		l.UsedServers += pl.Status().Total
	}
	return l
}

// Settings implements the console's source of SHOW CONFIG.
func (p *pooler) Settings() []admin.Setting {
	var out []admin.Setting
	for _, r := range p.cfg.Load().Rows() {
		out = append(out, admin.Setting(r))
	}
	return out
}

var _ frontend.Console = (*admin.Console)(nil)
