package admin

import "time"

// statsNames are the columns that SHOW STATS has twice.
var statsNames = []string{
	"xact_count", "xact_2pc_count", "query_count", "server_assignment_count", "received", "sent", "xact_time", "idle_xact_time",
	"query_time", "wait_time", "server_parse_count", "bind_count", "close_count", "errors", "cleaned", "rollbacks", "connect_time",
	"connect_count", "reads", "writes", "auth_attempts", "rows_inserted", "rows_updated", "rows_deleted",
}

func prefixed(prefix string, names []string) []string {
	var out []string
	for _, n := range names {
		out = append(out, prefix+n)
	}
	return out
}

// showCommands are what shows something in PgDog's columns.
func showCommands() []Command {
	return []Command{
		{
			Names: []string{"SHOW POOLS"}, Doc: "One line for each pool: who waits and what its servers do. healthy is false as long as the latest attempt to connect has failed.",
			Columns: concat(bigint("id"), text("database", "user", "addr"), numeric("port", "shard"), text("role"),
				numeric("cl_waiting", "sv_idle", "sv_active", "sv_idle_xact", "sv_total", "maxwait", "maxwait_us"), text("pool_mode"),
				boolean("paused", "banned", "healthy"), numeric("errors", "re_synced", "out_of_sync", "force_closed"), boolean("online", "schema_admin")),
			Dialect: PgDog, ReadOnly: true, run: showPools,
		},
		{
			Names: []string{"SHOW CLIENTS"}, Doc: "One line for each client; a list of columns behind it shows only those, with user, database, addr and port.",
			Columns: concat(bigint("id"), text("user", "database", "addr"), numeric("port"), text("state", "replication", "connect_time", "last_request"),
				numeric("queries", "transactions", "transactions_2pc", "wait_time", "query_time", "transaction_time", "bytes_received", "bytes_sent", "errors"),
				text("application_name"), boolean("locked"), numeric("prepared_statements")),
			Args: "[column, …]", columns: true, Always: []string{"user", "database", "addr", "port"},
			Dialect: PgDog, ReadOnly: true, run: showClients,
		},
		{
			Names: []string{"SHOW SERVERS"}, Tag: "SHOW", Doc: "One line for each server; a list of columns behind it shows only those, with user, database, addr and port.",
			Columns: concat(bigint("pool_id"), text("database", "user", "addr"), numeric("port"), text("state", "connect_time", "request_time"),
				numeric("remote_pid"), bigint("client_id"), numeric("transactions", "queries", "rollbacks", "prepared_statements", "healthchecks", "errors", "bytes_received", "bytes_sent"),
				text("last_sent", "last_received"), numeric("age"), text("application_name")),
			Args: "[column, …]", columns: true, Always: []string{"user", "database", "addr", "port"},
			Dialect: PgDog, ReadOnly: true, run: showServers,
		},
		{
			Names: []string{"SHOW STATS"}, Doc: "One line for each pool: what happened since the start, and per second or per event over stats_period. Times are in milliseconds.",
			Columns: concat(text("database", "user", "addr"), numeric("port", "shard"), text("role"),
				numeric(prefixed("total_", statsNames)...), numeric(prefixed("avg_", statsNames)...)),
			Dialect: PgDog, ReadOnly: true, run: showStats,
		},
		{
			Names: []string{"SHOW LISTS"}, Doc: "How many there are of everything. free_clients and free_servers are always 0: pgebb keeps none in stock.",
			Columns: numeric("databases", "users", "pools", "free_clients", "used_clients", "free_servers", "used_servers"),
			Dialect: PgDog, ReadOnly: true, run: showLists,
		},
		{
			Names: []string{"SHOW CONFIG"}, Tag: "SHOW", Doc: "The configuration in force: each key, its value and default, where the value comes from, and whether RELOAD or SET change it.",
			Columns: concat(text("name", "value", "default", "source"), boolean("reloadable")),
			Args:    "[LIKE 'pattern']", filter: "name", Dialect: PgDog, ReadOnly: true, run: showConfig,
		},
		{
			Names: []string{"SHOW PREPARED", "SHOW PREPARED STATEMENTS"}, Tag: "SHOW PREPARED STATEMENTS",
			Doc:     "One line for each prepared statement: its name on servers, its text, how many clients have prepared it, and what it takes in bytes.",
			Columns: concat(text("name", "statement", "rewrite"), numeric("used_by", "memory_used")),
			Args:    "[LIKE 'pattern']", filter: "statement", Dialect: both, ReadOnly: true, run: showPrepared,
		},
		{
			Names: []string{"SHOW LISTENERS"}, Doc: "One line for each channel that clients listen to in transaction or statement mode: how many do, how many notifications came, and how many were dropped because a client did not take them, counted for each client.",
			Columns: concat(text("database", "user"), numeric("shard"), text("channel"), numeric("listeners", "received", "dropped")),
			Dialect: PgDog, ReadOnly: true, run: showListeners,
		},
		{
			Names: []string{"SHOW INSTANCE ID"}, Tag: "SHOW INSTANCE_ID", Doc: "What tells this process from others: NODE_ID, or a random number.",
			Columns: text("instance_id"), Dialect: both, ReadOnly: true,
			run: func(r *request) ([][]*string, error) { return [][]*string{row(r.src.Instance)}, nil },
		},
		{
			Names: []string{"SHOW VERSION"}, Doc: "The version of pgebb.", Columns: text("version"), Dialect: both, ReadOnly: true,
			run: func(r *request) ([][]*string, error) { return [][]*string{row("pgebb " + r.src.Version)}, nil },
		},
		{
			Names: []string{"SHOW HELP"}, Doc: "The commands of the console.", Columns: text("command", "description"), Dialect: PgDog, ReadOnly: true, run: showHelp,
		},
	}
}

// absentCommands show what PgDog has and pgebb has not: they have no rows.
func absentCommands() []Command {
	absent := func(name, why string, columns ...[]Column) Command {
		return Command{
			Names: []string{name}, Doc: "Always empty: " + why + ".", Columns: concat(columns...), Dialect: PgDog, ReadOnly: true,
			run: func(*request) ([][]*string, error) { return nil, nil },
		}
	}
	return []Command{
		absent("SHOW PEERS", "several pgebb do not know of each other", text("addr", "last_seen"), numeric("clients")),
		absent("SHOW MIRRORS", "pgebb does not mirror", text("database", "user"),
			numeric("total_count", "mirrored_count", "dropped_count", "error_count", "queue_length")),
		absent("SHOW TRANSACTIONS", "there are no two-phase commits without shards", text("database", "user", "transaction_name", "transaction_state")),
	}
}

func showListeners(r *request) (rows [][]*string, _ error) {
	for _, x := range r.src.Listeners.Listeners() {
		rows = append(rows, row(x.Database, x.User, 0, x.Channel, x.Listeners, x.Received, x.Dropped))
	}
	return rows, nil
}

func showPools(r *request) (rows [][]*string, _ error) {
	for _, p := range r.src.Pools.Pools() {
		rows = append(rows, row(p.ID, p.Database, p.User, p.Addr, p.Port, 0, p.Role,
			p.Waiting, p.Idle, p.Active, p.IdleInXact, p.Total, int(p.MaxWait/time.Second), int(p.MaxWait%time.Second/time.Microsecond),
			p.Mode, p.Paused, p.Banned, p.Healthy, p.Errors, p.Resynced, p.OutOfSync, p.Reclosed, p.Online, false))
	}
	return rows, nil
}

func showClients(r *request) (rows [][]*string, _ error) {
	for _, x := range r.src.Clients.Clients() {
		rows = append(rows, row(x.ID, x.User, x.Database, x.Addr, x.Port, x.State, "none", x.Connected, x.LastRequest,
			x.Queries, x.Transactions, 0, milliseconds(x.WaitTime), milliseconds(x.QueryTime), milliseconds(x.TransactTime),
			x.Received, x.Sent, x.Errors, x.ApplicationName, x.Locked, x.PreparedStatements))
	}
	return rows, nil
}

func showServers(r *request) (rows [][]*string, _ error) {
	now := time.Now()
	for _, x := range r.src.Servers.Servers() {
		var client any
		if x.ClientID != 0 {
			client = x.ClientID
		}
		rows = append(rows, row(x.PoolID, x.Database, x.User, x.Addr, x.Port, x.State, x.Connected, x.Request, uint64(x.PID), client,
			x.Transactions, x.Queries, x.Rollbacks, x.PreparedStatements, 0, x.Errors, x.Received, x.Sent, letter(x.LastSent), letter(x.LastReceived),
			int(now.Sub(x.Connected)/time.Second), x.ApplicationName))
	}
	return rows, nil
}

func showStats(r *request) (rows [][]*string, _ error) {
	for _, x := range r.src.Stats.Stats() {
		line := row(x.Database, x.User, x.Addr, x.Port, 0, x.Role)
		line = append(line, counterRow(x.Total)...)
		rows = append(rows, append(line, r.averages.of(x.ID)...))
	}
	return rows, nil
}

func showLists(r *request) ([][]*string, error) {
	l := r.src.Lists.Lists()
	return [][]*string{row(l.Databases, l.Users, l.Pools, 0, l.UsedClients, 0, l.UsedServers)}, nil
}

func showConfig(r *request) (rows [][]*string, _ error) {
	for _, s := range r.src.Config.Settings() {
		rows = append(rows, row(s.Name, s.Value, s.Default, s.Source, s.Reloadable))
	}
	return rows, nil
}

func showPrepared(r *request) (rows [][]*string, _ error) {
	for _, p := range r.src.Prepared.Prepared() {
		rows = append(rows, row(p.Name, p.Statement, nil, p.UsedBy, uint64(p.Bytes)))
	}
	return rows, nil
}

func showHelp(r *request) (rows [][]*string, _ error) {
	for _, line := range help(r.dialect) {
		rows = append(rows, row(line.Command, line.Doc))
	}
	return rows, nil
}
