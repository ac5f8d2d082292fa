package admin

import (
	"slices"
	"strings"
	"time"
)

// Command is something that can be said to the console.
type Command struct {
	Names   []string // in upper case; the first one is the tag of its CommandComplete
	Tag     string   // if it is another
	Columns []Column // nil if it has no rows
	Doc     string
	// Select lets a list of columns behind the name choose what is shown.
	Select []string // columns that are shown in any case
	run    func(c *Console) ([][]*string, error)
}

func (cmd *Command) tag() string {
	if cmd.Tag != "" {
		return cmd.Tag
	}
	return cmd.Names[0]
}

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

// commands are all that the console knows.
var commands = append([]Command{
	{
		Names: []string{"SHOW POOLS"}, Doc: "One line for each pool: who waits and what its servers do.",
		Columns: concat(bigint("id"), text("database", "user", "addr"), numeric("port", "shard"), text("role"),
			numeric("cl_waiting", "sv_idle", "sv_active", "sv_idle_xact", "sv_total", "maxwait", "maxwait_us"), text("pool_mode"),
			boolean("paused", "banned", "healthy"), numeric("errors", "re_synced", "out_of_sync", "force_closed"), boolean("online", "schema_admin")),
		run: (*Console).showPools,
	},
	{
		Names: []string{"SHOW CLIENTS"}, Doc: "One line for each client; a list of columns behind it shows only those.",
		Columns: concat(bigint("id"), text("user", "database", "addr"), numeric("port"), text("state", "replication", "connect_time", "last_request"),
			numeric("queries", "transactions", "transactions_2pc", "wait_time", "query_time", "transaction_time", "bytes_received", "bytes_sent", "errors"),
			text("application_name"), boolean("locked"), numeric("prepared_statements")),
		Select: []string{"user", "database", "addr", "port"},
		run:    (*Console).showClients,
	},
	{
		Names: []string{"SHOW SERVERS"}, Tag: "SHOW", Doc: "One line for each server; a list of columns behind it shows only those.",
		Columns: concat(bigint("pool_id"), text("database", "user", "addr"), numeric("port"), text("state", "connect_time", "request_time"),
			numeric("remote_pid"), bigint("client_id"), numeric("transactions", "queries", "rollbacks", "prepared_statements", "healthchecks", "errors", "bytes_received", "bytes_sent"),
			text("last_sent", "last_received"), numeric("age"), text("application_name")),
		Select: []string{"user", "database", "addr", "port"},
		run:    (*Console).showServers,
	},
	{
		Names: []string{"SHOW STATS"}, Doc: "One line for each pool: what happened since the start, and per second or per event over stats_period.",
		Columns: concat(text("database", "user", "addr"), numeric("port", "shard"), text("role"),
			numeric(prefixed("total_", statsNames)...), numeric(prefixed("avg_", statsNames)...)),
		run: (*Console).showStats,
	},
	{
		Names: []string{"SHOW LISTS"}, Doc: "How many there are of everything. free_clients and free_servers are always 0: pgebb keeps none in stock.",
		Columns: numeric("databases", "users", "pools", "free_clients", "used_clients", "free_servers", "used_servers"),
		run:     (*Console).showLists,
	},
	{
		Names: []string{"SHOW CONFIG"}, Tag: "SHOW", Doc: "The configuration in force.", Columns: text("name", "value"),
		run: (*Console).showConfig,
	},
	{
		Names: []string{"SHOW VERSION"}, Doc: "The version of pgebb.", Columns: text("version"),
		run: func(c *Console) ([][]*string, error) { return [][]*string{row("pgebb " + c.src.Version)}, nil },
	},
	{
		Names: []string{"RELOAD"}, Doc: "Read the configuration files again. If they are refused, nothing changes and the answer says why.",
		run: func(c *Console) ([][]*string, error) { return nil, c.src.Control.Reload() },
	},
	{
		Names: []string{"SHUTDOWN"}, Doc: "Shut down gracefully, as SIGINT does.",
		run: func(c *Console) ([][]*string, error) { c.src.Control.Shutdown(); return nil, nil },
	},
	{
		Names: []string{"SET", "RESET", "BEGIN", "COMMIT", "ROLLBACK"}, Doc: "Accepted, because drivers and tools say it unasked; nothing happens.",
	},
}, memoryCommands...)

// find returns the command that a statement is, and what is behind its name.
func find(statement string) (cmd *Command, tag, rest string) {
	words := strings.Fields(strings.ToUpper(statement))
	for i := range commands {
		for _, name := range commands[i].Names {
			n := len(strings.Fields(name))
			if len(words) < n || strings.Join(words[:n], " ") != name {
				continue
			}
			tag = commands[i].tag()
			if commands[i].run == nil {
				tag = name
			}
			return &commands[i], tag, strings.Join(words[n:], " ")
		}
	}
	return nil, "", ""
}

// known lists all commands.
func known() string {
	var names []string
	for _, cmd := range commands {
		if cmd.run != nil {
			names = append(names, cmd.Names...)
		}
	}
	return strings.Join(names, ", ")
}

// suggest names the command that a statement was probably meant to be: one that
// begins with the same words, or has most letters in common.
func suggest(statement string) string {
	s := strings.ToUpper(strings.Join(strings.Fields(statement), " "))
	best, most := "", len("SHOW ") // that much says nothing
	if !strings.HasPrefix(s, "SHOW ") {
		most = 2
	}
	for _, cmd := range commands {
		for _, name := range cmd.Names {
			n := 0
			for n < len(s) && n < len(name) && s[n] == name[n] {
				n++
			}
			if n > most {
				best, most = name, n
			}
		}
	}
	return best
}

func (c *Console) showPools() ([][]*string, error) {
	var rows [][]*string
	for _, p := range c.src.Pools.Pools() {
		rows = append(rows, row(p.ID, p.Database, p.User, p.Addr, p.Port, 0, p.Role,
			p.Waiting, p.Idle, p.Active, p.IdleInXact, p.Total, int(p.MaxWait/time.Second), int(p.MaxWait%time.Second/time.Microsecond),
			p.Mode, false, false, p.Healthy, p.Errors, p.Resynced, p.OutOfSync, p.Reclosed, p.Online, false))
	}
	return rows, nil
}

func (c *Console) showClients() ([][]*string, error) {
	var rows [][]*string
	for _, x := range c.src.Clients.Clients() {
		rows = append(rows, row(x.ID, x.User, x.Database, x.Addr, x.Port, x.State, "none", x.Connected, x.LastRequest,
			x.Queries, x.Transactions, 0, milliseconds(x.WaitTime), milliseconds(x.QueryTime), milliseconds(x.TransactTime),
			x.Received, x.Sent, x.Errors, x.ApplicationName, x.Locked, x.PreparedStatements))
	}
	return rows, nil
}

func (c *Console) showServers() ([][]*string, error) {
	var rows [][]*string
	now := time.Now()
	for _, x := range c.src.Servers.Servers() {
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

func (c *Console) showStats() ([][]*string, error) {
	var rows [][]*string
	for _, x := range c.src.Stats.Stats() {
		r := row(x.Database, x.User, x.Addr, x.Port, 0, x.Role)
		r = append(r, counterRow(x.Total)...)
		rows = append(rows, append(r, c.averages.of(x.ID)...))
	}
	return rows, nil
}

func (c *Console) showLists() ([][]*string, error) {
	l := c.src.Lists.Lists()
	return [][]*string{row(l.Databases, l.Users, l.Pools, l.FreeClients, l.UsedClients, l.FreeServers, l.UsedServers)}, nil
}

func (c *Console) showConfig() ([][]*string, error) {
	var rows [][]*string
	for _, s := range c.src.Config.Settings() {
		rows = append(rows, row(s.Name, s.Value))
	}
	return rows, nil
}

// selectColumns returns the columns of a command that a list asks for, as indexes in
// the command's order; all of them for an empty list. unknown is a name that is not
// one.
func (cmd *Command) selectColumns(list string) (indexes []int, unknown string) {
	var names []string
	for _, name := range strings.FieldsFunc(list, func(r rune) bool { return r == ',' || r == ' ' }) {
		name = strings.ToLower(strings.Trim(name, `"`))
		if !slices.ContainsFunc(cmd.Columns, func(c Column) bool { return c.Name == name }) {
			return nil, name
		}
		names = append(names, name)
	}
	for i, c := range cmd.Columns {
		if names == nil || slices.Contains(names, c.Name) || slices.Contains(cmd.Select, c.Name) {
			indexes = append(indexes, i)
		}
	}
	return indexes, ""
}
