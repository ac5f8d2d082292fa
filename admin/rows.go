package admin

import "time"

// Place is where a pool is and whose it is.
type Place struct {
	Database, User, Addr string
	Port                 int
	Role                 string
}

// PoolRow is a line of SHOW POOLS.
type PoolRow struct {
	ID uint64
	Place
	Waiting                     int
	Idle, Active, IdleInXact    int
	Total                       int
	MaxWait                     time.Duration
	Mode                        string
	Healthy                     bool
	Errors, OutOfSync, Reclosed uint64 // Reclosed: servers closed in the middle of something
	Resynced                    uint64
	Online                      bool
}

// ClientRow is a line of SHOW CLIENTS.
type ClientRow struct {
	ID                                uint64
	User, Database, Addr              string
	Port                              int
	State                             string
	Connected, LastRequest            time.Time
	Queries, Transactions             uint64
	WaitTime, QueryTime, TransactTime time.Duration
	Received, Sent, Errors            uint64
	ApplicationName                   string
	Locked                            bool
	PreparedStatements                int
}

// ServerRow is a line of SHOW SERVERS.
type ServerRow struct {
	PoolID                           uint64
	Database, User, Addr             string
	Port                             int
	State                            string
	Connected, Request               time.Time
	PID                              uint32
	ClientID                         uint64 // 0 if nobody holds it
	Transactions, Queries, Rollbacks uint64
	Errors, Received, Sent           uint64
	LastSent, LastReceived           byte
	ApplicationName                  string
	PreparedStatements               int
}

// Counters are what SHOW STATS counts of a pool.
type Counters struct {
	Transactions, Queries, Assignments                                            uint64
	Received, Sent                                                                uint64
	TransactionTime, IdleTransactionTime, QueryTime, WaitTime                     time.Duration
	Parses, Binds, Closes, Errors, Cleaned, Rollbacks                             uint64
	ConnectTime                                                                   time.Duration
	Connects, Reads, Writes, AuthAttempts, RowsInserted, RowsUpdated, RowsDeleted uint64
}

// StatsRow is a line of SHOW STATS.
type StatsRow struct {
	ID uint64 // of the pool
	Place
	Total Counters
}

// Lists are the counts of SHOW LISTS.
type Lists struct {
	Databases, Users, Pools                            int
	FreeClients, UsedClients, FreeServers, UsedServers int
}

// Setting is a line of SHOW CONFIG.
type Setting struct{ Name, Value string }

// Sources are where a Console gets what it shows.
type Sources struct {
	Pools   interface{ Pools() []PoolRow }
	Clients interface{ Clients() []ClientRow }
	Servers interface{ Servers() []ServerRow }
	Stats   interface{ Stats() []StatsRow }
	Lists   interface{ Lists() Lists }
	Config  interface{ Settings() []Setting }
	Memory  MemorySource
	Control interface {
		Reload() error
		Shutdown()
	}
	Version     string
	StatsPeriod func() time.Duration // averaging window
}
