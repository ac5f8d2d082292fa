package admin

import (
	"context"
	"time"
)

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
	Clients, Waiting         int // Clients counts those of the user at the database, waiting or not
	Idle, Active, IdleInXact int
	Total, Connecting        int
	MaxWait                  time.Duration
	Mode                     string
	Paused, Banned, Healthy  bool
	Errors, OutOfSync        uint64
	Reclosed, Resynced       uint64 // Reclosed: servers closed in the middle of something
	Online                   bool
	Size, MinSize            int
	ServerLifetime           time.Duration // 0 is no limit
	ServerDatabase           string
	ServerUser               string // empty if it is the client's
}

// Socket is what is known of a connection besides its peer.
type Socket struct {
	LocalAddr string
	LocalPort int
	TLS       string // version and cipher suite; empty without
	Pending   int    // bytes that wait to be sent
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
	Socket                            Socket
}

// ListenerRow is a line of SHOW LISTENERS.
type ListenerRow struct {
	Database, User, Channel string
	Listeners               int
	Received, Dropped       uint64
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
	CloseNeeded                      bool // it is closed as soon as it is free
	Socket                           Socket
}

// Counters are what is counted of a pool. Its fields are numbers and times.
type Counters struct {
	Transactions, Queries, Assignments                                            uint64
	Received, Sent                                                                uint64
	TransactionTime, IdleTransactionTime, QueryTime, WaitTime                     time.Duration
	Parses, Binds, Closes, Errors, Cleaned, Rollbacks                             uint64
	ConnectTime                                                                   time.Duration
	Connects, Reads, Writes, AuthAttempts, RowsInserted, RowsUpdated, RowsDeleted uint64
	ClientParses, Logins, Evictions                                               uint64
}

// StatsRow is a line of SHOW STATS.
type StatsRow struct {
	ID uint64 // of the pool
	Place
	Total Counters
}

// Lists are the counts of SHOW LISTS.
type Lists struct {
	Databases, Users, Pools               int
	UsedClients, FreeServers, UsedServers int
	LoginClients                          int // that are not logged in yet
}

// Setting is a line of SHOW CONFIG.
type Setting struct {
	Name, Value, Default, Source string
	Reloadable                   bool
}

// PreparedRow is a line of SHOW PREPARED.
type PreparedRow struct {
	Name, Statement string
	UsedBy          int
	Bytes           int64
}

// DatabaseRow is a database as its clients name it.
type DatabaseRow struct {
	Name, Host     string
	Port           int
	ServerDatabase string
	ForceUser      string // empty if it is the client's
	Size, MinSize  int    // of a pool
	Lifetime       time.Duration
	Mode           string // empty if it is the general one
	Servers        int
	Clients        int
	Paused         bool
	Disabled       bool
}

// Scope is what a command is for: all pools, those of a database, or that of a user at a
// database. Empty names stand for all.
type Scope struct{ User, Database string }

// Shutdown says what a shutdown waits for.
type Shutdown uint8

// The ways to shut down.
const (
	ShutdownNow     Shutdown = iota // nothing
	ShutdownServers                 // transactions; each client is sent away at the end of its own
	ShutdownClients                 // clients; they stay as long as they like
)

// Control is what the console can make the pooler do. An error is for the operator.
type Control interface {
	// Reload reads the configuration again; what it says is for the operator.
	Reload() (notices []string, err error)
	Shutdown(how Shutdown)
	// Set changes a key until it is reset, or the configuration read again.
	Set(key, value string) error
	// Reset takes Set back, for all keys if there is no name.
	Reset(key string) error

	// Pause makes clients wait from their next transaction on, and closes idle servers.
	Pause(s Scope) error
	// Maintain makes clients wait from their next transaction on.
	Maintain(s Scope, on bool) error
	// Resume ends both.
	Resume(s Scope) error
	// Reconnect closes every server as soon as it is free, so that new ones are made.
	Reconnect(s Scope) error
	// Outdated is how many servers are left that Reconnect was for.
	Outdated(s Scope) (int, error)
	// InUse is how many servers are not free.
	InUse(s Scope) (int, error)
	// Kill pauses, and closes all clients and servers.
	Kill(s Scope) error
	// KillClient closes a client; false if there is none with this id.
	KillClient(id uint64) bool
	// Disable turns new clients of a database away; those that are there stay.
	Disable(database string, on bool) error

	// ResetPrepared drops the statements that nobody uses, and returns how many.
	ResetPrepared() int
	// Probe connects to a server and returns how long that took.
	Probe(ctx context.Context, url string) (time.Duration, error)
}

// Sources are where a Console gets what it shows. Their methods may take as long as a
// loop takes to answer.
type Sources struct {
	Pools     interface{ Pools() []PoolRow }
	Clients   interface{ Clients() []ClientRow }
	Servers   interface{ Servers() []ServerRow }
	Stats     interface{ Stats() []StatsRow }
	Lists     interface{ Lists() Lists }
	Config    interface{ Settings() []Setting }
	Memory    MemorySource
	Queries   QuerySource
	Health    Health
	Prepared  interface{ Prepared() []PreparedRow }
	Databases interface{ Databases() []DatabaseRow }
	Users     interface{ Users() []string }
	Listeners interface{ Listeners() []ListenerRow }
	Control   Control

	Version     string
	Instance    string               // names the process among others
	StatsPeriod func() time.Duration // averaging window
}
