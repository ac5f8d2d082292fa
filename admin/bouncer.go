package admin

import (
	"slices"
	"strings"
	"time"
)

// The result sets of PgBouncer, as of its version 1.25:
// https://www.pgbouncer.org/usage.html#admin-console

// bouncerCounts are the columns that SHOW STATS has with total_ and with avg_, by the
// names that SHOW STATS, STATS_TOTALS and STATS_AVERAGES give them.
var bouncerCounts = []struct{ total, avg, plain, plainAvg string }{
	{"server_assignment_count", "server_assignment_count", "server_assignment_count", "server_assignment_count"},
	{"xact_count", "xact_count", "xact_count", "xact_count"},
	{"query_count", "query_count", "query_count", "query_count"},
	{"received", "recv", "bytes_received", "bytes_received"},
	{"sent", "sent", "bytes_sent", "bytes_sent"},
	{"xact_time", "xact_time", "xact_time", "xact_time"},
	{"query_time", "query_time", "query_time", "query_time"},
	{"wait_time", "wait_time", "wait_time", "wait_time"},
	{"client_parse_count", "client_parse_count", "client_parse_count", "avg_client_parse_count"},
	{"server_parse_count", "server_parse_count", "server_parse_count", "avg_server_parse_count"},
	{"bind_count", "bind_count", "bind_count", "avg_bind_count"},
	{"client_login_count", "client_login_count", "client_login_count", "avg_client_login_count"},
}

func bouncerStatsColumns(totals, averages bool) []Column {
	columns := text("database")
	for _, c := range bouncerCounts {
		switch {
		case totals && averages:
			columns = append(columns, numeric("total_"+c.total)...)
		case totals:
			columns = append(columns, numeric(c.plain)...)
		}
	}
	for _, c := range bouncerCounts {
		switch {
		case totals && averages:
			columns = append(columns, numeric("avg_"+c.avg)...)
		case averages:
			columns = append(columns, numeric(c.plainAvg)...)
		}
	}
	return columns
}

// bouncerSockets are the columns of SHOW CLIENTS and SHOW SERVERS.
func bouncerSockets() []Column {
	return concat(text("type", "user", "database", "replication", "state", "addr"), integer("port"), text("local_addr"), integer("local_port"),
		text("connect_time", "request_time"), integer("wait", "wait_us", "close_needed"), text("ptr", "link"), integer("remote_pid"),
		text("tls", "application_name"), integer("prepared_statements", "id"))
}

// bouncerCommands are what shows something in PgBouncer's columns. Those that PgDog has
// no other columns for are in both dialects.
func bouncerCommands() []Command {
	list := []Command{
		{
			Names: []string{"SHOW POOLS"}, Doc: "One line for each pool.",
			Columns: concat(text("database", "user"), integer("cl_active", "cl_waiting", "cl_active_cancel_req", "cl_waiting_cancel_req", "sv_active",
				"sv_active_cancel", "sv_being_canceled", "sv_idle", "sv_used", "sv_tested", "sv_login", "maxwait", "maxwait_us"), text("pool_mode", "load_balance_hosts")),
			run: bouncerPools,
		},
		{Names: []string{"SHOW CLIENTS"}, Doc: "One line for each client.", Columns: bouncerSockets(), run: bouncerClients},
		{Names: []string{"SHOW SERVERS"}, Doc: "One line for each server.", Columns: bouncerSockets(), run: bouncerServers},
		{
			Names: []string{"SHOW STATS"}, Doc: "One line for each database: what happened since the start, and per second or per event over stats_period. Times are in microseconds.",
			Columns: bouncerStatsColumns(true, true), run: bouncerStats(true, true),
		},
		{
			Names: []string{"SHOW STATS_TOTALS"}, Doc: "The totals of SHOW STATS; times are in microseconds.", Columns: bouncerStatsColumns(true, false), run: bouncerStats(true, false),
		},
		{
			Names: []string{"SHOW STATS_AVERAGES"}, Doc: "The averages of SHOW STATS; times are in microseconds.", Columns: bouncerStatsColumns(false, true), run: bouncerStats(false, true),
		},
		{
			Names: []string{"SHOW DATABASES"}, Doc: "One line for each database. Limits that pgebb does not have are 0.",
			Columns: concat(text("name", "host"), integer("port"), text("database", "force_user"), integer("pool_size", "min_pool_size", "reserve_pool_size", "server_lifetime"),
				text("pool_mode", "load_balance_hosts"), integer("max_connections", "current_connections", "max_client_connections", "current_client_connections", "paused", "disabled")),
			run: bouncerDatabases,
		},
		{
			Names: []string{"SHOW USERS"}, Doc: "One line for each user.",
			Columns: concat(text("name", "pool_size", "reserve_pool_size", "pool_mode"),
				integer("max_user_connections", "current_connections", "max_user_client_connections", "current_client_connections")),
			run: bouncerUsers,
		},
		{Names: []string{"SHOW LISTS"}, Doc: "How many there are of everything.", Columns: concat(text("list"), integer("items")), run: bouncerLists},
		{
			Names: []string{"SHOW CONFIG"}, Doc: "The configuration in force, where PgBouncer has such a setting under its name; times are in seconds.",
			Columns: text("key", "value", "default", "changeable"), run: bouncerConfig,
		},
		{
			Names: []string{"SHOW SOCKETS"}, Doc: "One line for each client and each server, with the bytes that wait to be sent to it (send_remain).",
			Columns: bouncerSocketColumns(), run: bouncerAllSockets(false),
		},
		{
			Names: []string{"SHOW ACTIVE_SOCKETS"}, Doc: "The lines of SHOW SOCKETS with something to be sent.",
			Columns: bouncerSocketColumns(), run: bouncerAllSockets(true),
		},
		{
			Names: []string{"SHOW TOTALS"}, Doc: "SHOW STATS of all databases together, one line for each figure; times are in microseconds.",
			Columns: concat(text("name"), numeric("value")), run: bouncerAllTotals,
		},
		{Names: []string{"SHOW STATE"}, Doc: "Whether anything is paused.", Columns: text("key", "value"), run: bouncerState},
		{Names: []string{"SHOW HELP"}, Tag: "SHOW", Doc: "The commands of the console, in a notice.", run: bouncerHelp},
	}
	list = append(list, bouncerEmpty()...)
	clashing := append(absentCommands(), showCommands()...)
	for i := range list {
		cmd := &list[i]
		cmd.Dialect, cmd.ReadOnly, cmd.Tag = both, true, "SHOW"
		if slices.ContainsFunc(clashing, func(other Command) bool { return other.Names[0] == cmd.Names[0] }) {
			cmd.Dialect = PgBouncer
		}
	}
	return list
}

// bouncerEmpty are the commands that show what pgebb has none of.
func bouncerEmpty() []Command {
	return []Command{
		{
			Names: []string{"SHOW MEM"}, Doc: "Always empty: pgebb has none of PgBouncer's caches of fixed size.",
			Columns: concat(text("name"), integer("size", "used", "free", "memtotal")), run: nothing,
		},
		{
			Names: []string{"SHOW PEERS"}, Doc: "Always empty: several pgebb do not know of each other.",
			Columns: concat(integer("peer_id"), text("host"), integer("port", "pool_size")), run: nothing,
		},
		{
			Names: []string{"SHOW PEER_POOLS"}, Doc: "Always empty: several pgebb do not know of each other.",
			Columns: integer("peer_id", "cl_active_cancel_req", "cl_waiting_cancel_req", "sv_active_cancel", "sv_login"), run: nothing,
		},
		{
			Names: []string{"SHOW DNS_HOSTS"}, Doc: "Always empty: names are looked up whenever pgebb connects.",
			Columns: concat(text("hostname"), bigint("ttl"), text("addrs")), run: nothing,
		},
		{
			Names: []string{"SHOW DNS_ZONES"}, Doc: "Always empty: names are looked up whenever pgebb connects.",
			Columns: concat(text("zonename"), bigint("serial"), integer("count")), run: nothing,
		},
	}
}

func nothing(*request) ([][]*string, error) { return nil, nil }

// consoleName is the database and the user of the console, as PgBouncer names them.
const consoleName = "pgbouncer"

func bouncerPools(r *request) (rows [][]*string, _ error) {
	pools := r.src.Pools.Pools()
	slices.SortFunc(pools, func(a, b PoolRow) int { return strings.Compare(a.Database+"\x00"+a.User, b.Database+"\x00"+b.User) })
	console := row(consoleName, consoleName, r.operators(), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, "statement", nil)
	for _, p := range pools {
		if console != nil && p.Database > consoleName {
			rows, console = append(rows, console), nil
		}
		rows = append(rows, row(p.Database, p.User, max(p.Clients-p.Waiting, 0), p.Waiting, 0, 0, p.Active+p.IdleInXact,
			0, 0, p.Idle, 0, 0, p.Connecting, int(p.MaxWait/time.Second), int(p.MaxWait%time.Second/time.Microsecond), p.Mode, nil))
	}
	if console != nil {
		rows = append(rows, console)
	}
	return rows, nil
}

// bouncerTime is how PgBouncer writes a time.
func bouncerTime(t time.Time) string { return t.Format("2006-01-02 15:04:05 MST") }

// bouncerStats is a line for each database, which is the sum of its pools.
func bouncerStats(totals, averages bool) func(*request) ([][]*string, error) {
	return func(r *request) (rows [][]*string, _ error) {
		sums, ids := map[string]Counters{}, map[string][]uint64{}
		var names []string
		for _, x := range r.src.Stats.Stats() {
			if ids[x.Database] == nil {
				names = append(names, x.Database)
			}
			sums[x.Database] = sums[x.Database].plus(x.Total)
			ids[x.Database] = append(ids[x.Database], x.ID)
		}
		slices.Sort(names)
		for _, name := range names {
			line := row(name)
			if totals {
				line = append(line, bouncerTotals(sums[name])...)
			}
			if averages {
				line = append(line, bouncerAverages(r.averages.sum(ids[name]))...)
			}
			rows = append(rows, line)
		}
		return rows, nil
	}
}

func micro(d time.Duration) uint64 { return uint64(max(d, 0) / time.Microsecond) }

// bouncerTotals is counters in the order of bouncerCounts.
func bouncerTotals(c Counters) []*string {
	return row(c.Assignments, c.Transactions, c.Queries, c.Received, c.Sent, micro(c.TransactionTime), micro(c.QueryTime), micro(c.WaitTime),
		c.ClientParses, c.Parses, c.Binds, c.Logins)
}

// bouncerAverages is what changed in a period: counts per second, times per event.
func bouncerAverages(c Counters, period time.Duration) []*string {
	rate := func(n uint64) uint64 {
		if period <= 0 {
			return 0
		}
		return uint64(float64(n) / period.Seconds())
	}
	per := func(t time.Duration, n uint64) uint64 {
		if n == 0 {
			return 0
		}
		return micro(t) / n
	}
	return row(rate(c.Assignments), rate(c.Transactions), rate(c.Queries), rate(c.Received), rate(c.Sent), per(c.TransactionTime, c.Transactions),
		per(c.QueryTime, c.Queries), per(c.WaitTime, c.Assignments), rate(c.ClientParses), rate(c.Parses), rate(c.Binds), rate(c.Logins))
}

// bouncerTotalNames are the names of SHOW TOTALS, in the order of bouncerCounts.
var bouncerTotalNames = []string{"server_assignment_count", "xact_count", "query_count", "client_bytes", "server_bytes", "xact_time", "query_time",
	"wait_time", "ps_client_parse_count", "ps_server_parse_count", "ps_bind_count", "client_login_count"}

func bouncerAllTotals(r *request) (rows [][]*string, _ error) {
	var sum Counters
	var ids []uint64
	for _, x := range r.src.Stats.Stats() {
		sum = sum.plus(x.Total)
		ids = append(ids, x.ID)
	}
	add := func(prefix string, values []*string) {
		for i, v := range values {
			rows = append(rows, append(row(prefix+bouncerTotalNames[i]), v))
		}
	}
	add("total_", bouncerTotals(sum))
	add("avg_", bouncerAverages(r.averages.sum(ids)))
	return rows, nil
}

func bit(b bool) int {
	if b {
		return 1
	}
	return 0
}

// orNull is NULL for an empty text.
func orNull(s string) any {
	if s == "" {
		return nil
	}
	return s
}

func bouncerDatabases(r *request) (rows [][]*string, _ error) {
	databases := r.src.Databases.Databases()
	slices.SortFunc(databases, func(a, b DatabaseRow) int { return strings.Compare(a.Name, b.Name) })
	for _, d := range databases {
		rows = append(rows, row(d.Name, d.Host, d.Port, d.ServerDatabase, orNull(d.ForceUser), d.Size, d.MinSize, 0, int(d.Lifetime/time.Second), orNull(d.Mode),
			nil, 0, d.Servers, 0, d.Clients, bit(d.Paused), bit(d.Disabled)))
	}
	return rows, nil
}

func bouncerUsers(r *request) (rows [][]*string, _ error) {
	servers, clients := map[string]int{}, map[string]int{}
	for _, p := range r.src.Pools.Pools() {
		servers[p.User] += p.Total
		clients[p.User] += p.Clients
	}
	names := r.src.Users.Users()
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		rows = append(rows, row(name, "", "", nil, 0, servers[name], 0, clients[name]))
	}
	return rows, nil
}

func bouncerLists(r *request) (rows [][]*string, _ error) {
	l := r.src.Lists.Lists()
	for _, x := range []struct {
		name string
		n    int
	}{
		{"databases", l.Databases}, {"users", l.Users}, {"peers", 0}, {"pools", l.Pools}, {"peer_pools", 0}, {"free_clients", 0},
		{"used_clients", l.UsedClients}, {"login_clients", l.LoginClients}, {"free_servers", l.FreeServers}, {"used_servers", l.UsedServers},
		{"dns_names", 0}, {"dns_zones", 0}, {"dns_queries", 0}, {"dns_pending", 0},
	} {
		rows = append(rows, row(x.name, x.n))
	}
	return rows, nil
}

func bouncerState(r *request) ([][]*string, error) {
	paused := "no"
	if slices.ContainsFunc(r.src.Pools.Pools(), func(p PoolRow) bool { return p.Paused }) {
		paused = "yes"
	}
	active := map[string]string{"no": "yes", "yes": "no"}[paused]
	return [][]*string{row("active", active), row("paused", paused), row("suspended", "no")}, nil
}

func bouncerHelp(r *request) ([][]*string, error) {
	var lines []string
	for _, line := range help(r.dialect) {
		lines = append(lines, line.Command)
	}
	r.notice("Console usage", "\n\t"+strings.Join(lines, "\n\t"))
	return nil, nil
}
