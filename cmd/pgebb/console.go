package main

import (
	"cmp"
	"fmt"
	"net"
	"time"

	"github.com/pgebb/pgebb/admin"
	"github.com/pgebb/pgebb/backend"
	"github.com/pgebb/pgebb/cache"
	"github.com/pgebb/pgebb/config"
	"github.com/pgebb/pgebb/frontend"
	"github.com/pgebb/pgebb/internal/loop"
	"github.com/pgebb/pgebb/pool"
)

// newConsole makes the console of the pooler, which gets what it shows from the
// methods of this file, and does what those of control.go do.
func (p *pooler) newConsole() *admin.Console {
	return admin.New(admin.Sources{
		Pools: p, Clients: p, Servers: p, Stats: p, Lists: p, Config: p, Memory: p, Queries: p, Health: p, Prepared: p, Databases: p, Users: p, Listeners: p, Control: p,
		Version: version(), Instance: p.instance,
		StatsPeriod: func() time.Duration { return p.cfg.Load().General.StatsPeriod },
	})
}

// operators serves those who log in to the console.
type operators struct{ *pooler }

// Serve implements [frontend.Console].
func (o operators) Serve(conn net.Conn, database string, operator bool) error {
	client := "unix"
	if a := conn.RemoteAddr(); a != nil && a.Network() != "unix" {
		client = a.String()
	}
	dialect := admin.PgDog
	if o.cfg.Load().SpeaksBouncer(database) {
		dialect = admin.PgBouncer
	}
	return o.console.Serve(conn, dialect, operator, o.log.With("client", client))
}

// Cancel implements [frontend.Console].
func (o operators) Cancel(pid uint32, secret []byte) { o.console.Cancel(pid, secret) }

func place(c *config.Pool) admin.Place {
	return admin.Place{Database: c.Database, User: c.User, Addr: c.Host, Port: c.Port, Role: c.Role}
}

// Pools implements the console's source of SHOW POOLS.
func (p *pooler) Pools() []admin.PoolRow {
	rows, _ := p.poolRows(p.registry.AllCounters(), p.frontend.CountByLogin())
	return rows
}

// poolRows is a line for each pool that there are counters of, in the order of their IDs,
// and how many servers of each clients keep though they are idle.
func (p *pooler) poolRows(counters map[*pool.Pool]*backend.Counters, clients map[pool.Scope]int) (rows []admin.PoolRow, locked map[*pool.Pool]int) {
	inTransaction := map[*pool.Pool]int{}
	locked = map[*pool.Pool]int{}
	p.registry.EachServer(func(pl *pool.Pool, s *backend.Server) {
		switch {
		case s.Holder() != 0 && s.Settled():
			locked[pl]++
		case s.State() == backend.StateIdleInTransaction:
			inTransaction[pl]++
		}
	})
	for _, pl := range p.registry.Pools() {
		n := counters[pl]
		if n == nil {
			continue // it has just come
		}
		s, c := pl.Status(), pl.Settings()
		idleInXact := min(inTransaction[pl], s.Total-s.Idle)
		row := admin.PoolRow{
			ID: pl.ID, Place: place(c), Waiting: s.Waiting, Idle: s.Idle, Active: s.Total - s.Idle - idleInXact, IdleInXact: idleInXact,
			Total: s.Total, Connecting: s.Connecting, MaxWait: s.MaxWait, Mode: c.Mode.String(), Paused: s.Paused,
			Banned: s.Ban != nil, Healthy: !s.Failing,
			Errors: n.ConnectFailures + n.Lost + n.CheckoutTimeouts, OutOfSync: n.OutOfSync, Reclosed: n.ForceClosed,
			Resynced: n.Resynced, Online: true, Size: c.Size, MinSize: c.MinSize, ServerDatabase: c.ServerDatabase,
			Clients: clients[pool.Scope{User: c.User, Database: c.Database}],
		}
		if c.ServerLifetime != config.Off {
			row.ServerLifetime = c.ServerLifetime
		}
		if c.ServerUser != c.User {
			row.ServerUser = c.ServerUser
		}
		rows = append(rows, row)
	}
	return rows, locked
}

// Listeners implements the console's source of SHOW LISTENERS.
func (p *pooler) Listeners() (rows []admin.ListenerRow) {
	for _, x := range p.registry.Listeners() {
		rows = append(rows, admin.ListenerRow{
			Database: x.Database, User: x.User, Channel: x.Channel, Listeners: x.Listeners, Received: x.Received, Dropped: x.Dropped,
		})
	}
	return rows
}

// Databases implements the console's source of SHOW DATABASES.
func (p *pooler) Databases() []admin.DatabaseRow {
	cfg := p.cfg.Load()
	byHost := map[string]*admin.DatabaseRow{}
	var rows []*admin.DatabaseRow
	key := func(name, host string, port int) string { return fmt.Sprintf("%s\x00%s\x00%d", name, host, port) }
	for _, db := range cfg.Databases {
		row := &admin.DatabaseRow{
			Name: db.Name, Host: db.Host, Port: db.Port, ServerDatabase: cmp.Or(db.DatabaseName, db.Name), ForceUser: db.User,
			Size: cfg.General.DefaultPoolSize, MinSize: cfg.General.MinPoolSize, Disabled: p.frontend.Disabled(db.Name),
		}
		if db.PoolerMode != nil {
			row.Mode = db.PoolerMode.String()
		}
		rows = append(rows, row)
		byHost[key(db.Name, db.Host, db.Port)] = row
	}
	for _, pl := range p.Pools() {
		if row := byHost[key(pl.Database, pl.Addr, pl.Port)]; row != nil {
			row.Servers += pl.Total
			row.Clients += pl.Clients
			row.Size, row.MinSize, row.Lifetime = pl.Size, pl.MinSize, pl.ServerLifetime
			row.Paused = row.Paused || pl.Paused
		}
	}
	var out []admin.DatabaseRow
	for _, row := range rows {
		out = append(out, *row)
	}
	return out
}

// Users implements the console's source of SHOW USERS.
func (p *pooler) Users() []string {
	var names []string
	for _, u := range p.cfg.Load().Users {
		names = append(names, u.Name)
	}
	return names
}

// Prepared implements the console's source of SHOW PREPARED.
func (p *pooler) Prepared() []admin.PreparedRow {
	var rows []admin.PreparedRow
	p.registry.Registry().Each(func(i cache.Info) {
		rows = append(rows, admin.PreparedRow{Name: backend.StatementName(i.ID), Statement: i.Text, UsedBy: i.UsedBy, Bytes: i.Bytes})
	})
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
			Socket: admin.Socket{LocalAddr: c.LocalAddr, LocalPort: c.LocalPort, TLS: c.Encryption, Pending: c.Pending},
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
		local, localPort := s.Conn.LocalAddr()
		rows = append(rows, admin.ServerRow{
			PoolID: pl.ID, Database: s.Target.Database, User: s.Target.User, Addr: c.Host, Port: c.Port, State: s.State(),
			Connected: loop.Time(s.Born), Request: loop.Time(s.Since), PID: s.PID, ClientID: s.Holder(),
			Transactions: s.Totals.Transactions, Queries: s.Totals.Queries, Rollbacks: s.Totals.Rollbacks, Errors: s.Totals.Errors,
			Received: s.Totals.Received, Sent: s.Totals.Sent, LastSent: s.Totals.LastSent, LastReceived: s.Totals.LastReceived,
			ApplicationName: name, PreparedStatements: s.Statements(), CloseNeeded: pl.Outdated(s),
			Socket: admin.Socket{LocalAddr: local, LocalPort: localPort, TLS: s.Conn.Encryption(), Pending: s.Conn.Pending()},
		})
	})
	return rows
}

// Stats implements the console's source of SHOW STATS.
func (p *pooler) Stats() []admin.StatsRow {
	var rows []admin.StatsRow
	counters := p.registry.AllCounters()
	for _, pl := range p.registry.Pools() {
		n := counters[pl]
		if n == nil {
			continue // it has just come
		}
		rows = append(rows, admin.StatsRow{ID: pl.ID, Place: place(pl.Settings()), Total: total(n)})
	}
	return rows
}

// Lists implements the console's source of SHOW LISTS.
func (p *pooler) Lists() admin.Lists {
	cfg := p.cfg.Load()
	l := admin.Lists{Databases: len(cfg.Databases), Users: len(cfg.Users), UsedClients: p.frontend.Count()}
	for _, pl := range p.registry.Pools() {
		l.Pools++
		status := pl.Status()
		l.UsedServers += status.Total
		l.FreeServers += status.Idle
	}
	l.LoginClients = p.frontend.LoggingIn()
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

var _ frontend.Console = operators{}
