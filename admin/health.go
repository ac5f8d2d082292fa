package admin

import (
	"fmt"
	"strconv"
	"time"
)

// BanRow is a line of SHOW BANS.
type BanRow struct {
	ID uint64 // of the pool
	Place
	Reason string
	Left   time.Duration // negative if it does not end by itself
}

// ReplicationRow is a line of SHOW REPLICATION.
type ReplicationRow struct {
	ID uint64 // of the pool
	Place
	Known      bool // the host has been asked
	Recovering bool
	LSN        uint64
	Lag, Age   time.Duration
}

// Health is what the console shows of hosts and does to them.
type Health interface {
	Bans() []BanRow
	Replication() []ReplicationRow
	// Ban keeps reads from the host of a pool, Unban ends that, and CheckNow asks for a
	// sign of life; each is for all pools if id is 0, and returns how many it was for.
	Ban(id uint64) int
	Unban(id uint64) int
	CheckNow(id uint64) int
}

// healthCommands are those about hosts.
func healthCommands() []Command {
	pool := concat(bigint("id"), text("database", "user", "addr"), numeric("port", "shard"), text("role"))
	return []Command{
		{
			Names: []string{"SHOW BANS"}, Doc: "One line for each pool whose host gets no reads, with the reason; ban_time_left is in milliseconds, NULL for a ban that does not end by itself.",
			Columns: concat(pool, text("ban_reason"), numeric("ban_time_left")), Dialect: both, ReadOnly: true, Tag: "SHOW BANS", run: showBans,
		},
		{
			Names: []string{"SHOW REPLICATION"}, Doc: "One line for each pool: what its host said last of its position in the WAL. NULL if it has not been asked (lsn_check_delay).",
			Columns: concat(pool, text("replica_lag", "pg_lsn", "lsn_age", "pg_is_in_recovery")), Dialect: both, ReadOnly: true, Tag: "SHOW REPLICATION", run: showReplication,
		},
		{
			Names: []string{"BAN"}, Args: "[pool_id]", Dialect: both, Tag: "BAN", run: onPools(Health.Ban),
			Doc: "Keep reads from the host of a pool, or of all, until UNBAN; the id is that of SHOW POOLS.",
		},
		{
			Names: []string{"UNBAN"}, Args: "[pool_id]", Dialect: both, Tag: "UNBAN", run: onPools(Health.Unban),
			Doc: "End the ban of a pool, or all bans.",
		},
		{
			Names: []string{"HEALTHCHECK"}, Args: "[pool_id]", Dialect: both, Tag: "HEALTHCHECK", run: onPools(Health.CheckNow),
			Doc: "Check an idle server of a pool, or one of each, at once; SHOW POOLS, SHOW BANS and the log say what came of it.",
		},
	}
}

func showBans(r *request) (rows [][]*string, _ error) {
	for _, b := range r.src.Health.Bans() {
		var left any
		if b.Left >= 0 {
			left = int(b.Left.Milliseconds())
		}
		rows = append(rows, row(b.ID, b.Database, b.User, b.Addr, b.Port, 0, b.Role, b.Reason, left))
	}
	return rows, nil
}

func showReplication(r *request) (rows [][]*string, _ error) {
	for _, x := range r.src.Health.Replication() {
		line := row(x.ID, x.Database, x.User, x.Addr, x.Port, 0, x.Role)
		if !x.Known {
			rows = append(rows, append(line, row(nil, nil, nil, nil)...))
			continue
		}
		var lsn, lag any
		if x.LSN > 0 {
			lsn = fmt.Sprintf("%X/%X", x.LSN>>32, uint32(x.LSN))
		}
		if x.Recovering {
			lag = fmt.Sprintf("%dms", x.Lag.Milliseconds())
		}
		rows = append(rows, append(line, row(lag, lsn, fmt.Sprintf("%dms", x.Age.Milliseconds()), letterOf(x.Recovering))...))
	}
	return rows, nil
}

// letterOf is how Postgres writes a boolean.
func letterOf(b bool) string {
	if b {
		return "t"
	}
	return "f"
}

// onPools is for one pool, or for all.
func onPools(do func(Health, uint64) int) func(*request) ([][]*string, error) {
	return func(r *request) ([][]*string, error) {
		id := uint64(0)
		if len(r.args) > 0 {
			n, err := strconv.ParseUint(r.args[0].text, 10, 64)
			if err != nil || n == 0 || len(r.args) > 1 {
				return nil, syntaxError("SHOW POOLS has the ids of pools.", "%s takes the id of a pool, or nothing for all", r.name)
			}
			id = n
		}
		if do(r.src.Health, id) == 0 && id != 0 {
			return nil, &commandError{"42704", fmt.Sprintf("there is no pool with the id %d", id), "SHOW POOLS has the ids of pools."}
		}
		return nil, nil
	}
}
