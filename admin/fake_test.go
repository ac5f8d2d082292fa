package admin

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/pgebb/pgebb/internal/leak"
	"github.com/pgebb/pgebb/internal/memory"
	"github.com/pgebb/pgebb/internal/testlog"
)

func TestMain(m *testing.M) { os.Exit(leak.Check(m)) }

// fake is a pooler that has one of everything, and notes what it is told to do.
type fake struct {
	mu    sync.Mutex
	told  []string
	inUse int   // servers, for PAUSE and WAIT_CLOSE
	err   error // of every command
	stats []StatsRow
}

var somePlace = Place{Database: "app", User: "ann", Addr: "10.0.0.5", Port: 5432, Role: "primary"}

var someTime = time.Date(2026, 1, 2, 3, 4, 5, 678e6, time.UTC)

func (f *fake) Pools() []PoolRow {
	return []PoolRow{{
		ID: 7, Place: somePlace, Clients: 5, Waiting: 2, Idle: 3, Active: 4, IdleInXact: 1, Total: 8, Connecting: 1, MaxWait: 1500 * time.Millisecond,
		Mode: "transaction", Healthy: true, Errors: 6, OutOfSync: 1, Reclosed: 2, Resynced: 3, Online: true, Size: 10, MinSize: 1, ServerDatabase: "app_1",
	}}
}

func (f *fake) Clients() []ClientRow {
	return []ClientRow{{
		ID: 41, User: "ann", Database: "app", Addr: "10.0.0.9", Port: 40000, State: "idle", Connected: someTime, LastRequest: someTime, Queries: 3,
		Transactions: 2, WaitTime: time.Millisecond, QueryTime: 1500 * time.Microsecond, Received: 10, Sent: 20, ApplicationName: "psql", PreparedStatements: 1,
		Socket: Socket{LocalAddr: "10.0.0.1", LocalPort: 6432, TLS: "TLSv1.3/TLS_AES_128_GCM_SHA256", Pending: 7},
	}}
}

func (f *fake) Servers() []ServerRow {
	return []ServerRow{{
		PoolID: 7, Database: "app", User: "ann", Addr: "10.0.0.5", Port: 5432, State: "active", Connected: someTime, Request: someTime, PID: 99, ClientID: 41,
		LastSent: 'Q', LastReceived: 'Z', ApplicationName: "psql", CloseNeeded: true,
	}}
}

func (f *fake) Stats() []StatsRow {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.stats
}

func (f *fake) Lists() Lists {
	return Lists{Databases: 1, Users: 2, Pools: 3, UsedClients: 4, FreeServers: 5, UsedServers: 6, LoginClients: 7}
}

func (f *fake) Settings() []Setting {
	return []Setting{
		{"checkout_timeout", "5s", "5s", "default", true}, {"host", "0.0.0.0", "0.0.0.0", "default", false},
		{"query_timeout", "1500ms", "off", "SET", true}, {"stats_period", "15000", "15000", "default", true},
	}
}

func (f *fake) Prepared() []PreparedRow {
	return []PreparedRow{{"__pgebb_1", "SELECT 1", 2, 100}, {"__pgebb_2", "SELECT name FROM people", 1, 200}}
}

func (f *fake) Listeners() []ListenerRow {
	return []ListenerRow{{Database: "app", User: "ann", Channel: "jobs", Listeners: 2, Received: 30, Dropped: 1}}
}

func (f *fake) Databases() []DatabaseRow {
	return []DatabaseRow{{Name: "app", Host: "10.0.0.5", Port: 5432, ServerDatabase: "app_1", Size: 10, MinSize: 1, Servers: 8, Clients: 5, Paused: true}}
}

func (f *fake) Users() []string { return []string{"zoe", "ann", "ann"} }

func (f *fake) tell(format string, args ...any) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.told = append(f.told, fmt.Sprintf(format, args...))
	return f.err
}

func (f *fake) heard() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	s := strings.Join(f.told, ";")
	f.told = nil
	return s
}

func (f *fake) busy(n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.inUse = n
}

func (f *fake) left() (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.inUse, f.err
}

func (f *fake) Reload() ([]string, error)       { return []string{"port needs a restart"}, f.tell("reload") }
func (f *fake) Shutdown(how Shutdown)           { _ = f.tell("shutdown %d", how) }
func (f *fake) Set(key, value string) error     { return f.tell("set %s=%s", key, value) }
func (f *fake) Reset(key string) error          { return f.tell("reset %q", key) }
func (f *fake) Pause(s Scope) error             { return f.tell("pause %v", s) }
func (f *fake) Maintain(s Scope, on bool) error { return f.tell("maintain %v %v", s, on) }
func (f *fake) Resume(s Scope) error            { return f.tell("resume %v", s) }
func (f *fake) Reconnect(s Scope) error         { return f.tell("reconnect %v", s) }
func (f *fake) Outdated(Scope) (int, error)     { return f.left() }
func (f *fake) InUse(Scope) (int, error)        { return f.left() }
func (f *fake) Kill(s Scope) error              { return f.tell("kill %v", s) }
func (f *fake) KillClient(id uint64) bool       { return f.tell("kill client %d", id) == nil && id == 41 }
func (f *fake) Disable(db string, on bool) error {
	return f.tell("disable %s %v", db, on)
}
func (f *fake) ResetPrepared() int { _ = f.tell("reset prepared"); return 3 }
func (f *fake) Probe(_ context.Context, url string) (time.Duration, error) {
	return 12 * time.Millisecond, f.tell("probe %s", url)
}

func newConsole(f *fake) *Console {
	return New(Sources{
		Pools: f, Clients: f, Servers: f, Stats: f, Lists: f, Config: f, Memory: f, Queries: f, Health: f, Prepared: f, Databases: f, Users: f, Listeners: f, Control: f,
		Version: "1.2.3", Instance: "one", StatsPeriod: func() time.Duration { return time.Second },
	})
}

// operator is an operator's side of a session.
type operator struct {
	t    *testing.T
	pg   *pgproto3.Frontend
	conn net.Conn
	key  *pgproto3.BackendKeyData
	done chan error // what Serve has returned
	log  *testlog.Buffer
}

// connect begins a session and reads the greeting.
func connect(t *testing.T, c *Console, dialect Dialect, admin bool) *operator {
	t.Helper()
	ours, theirs := net.Pipe()
	o := &operator{t: t, pg: pgproto3.NewFrontend(ours, ours), conn: ours, done: make(chan error, 1), log: new(testlog.Buffer)}
	go func() {
		defer theirs.Close()
		o.done <- c.Serve(theirs, dialect, admin, slog.New(slog.NewTextHandler(o.log, nil)))
	}()
	t.Cleanup(func() { ours.Close(); <-o.done; o.done <- nil })
	for {
		switch m := o.receive().(type) {
		case *pgproto3.BackendKeyData:
			o.key = m
		case *pgproto3.ReadyForQuery:
			return o
		}
	}
}

func (o *operator) receive() pgproto3.BackendMessage {
	o.t.Helper()
	m, err := o.pg.Receive()
	if err != nil {
		o.t.Fatalf("the console says nothing: %v", err)
	}
	return m
}

func (o *operator) say(messages ...pgproto3.FrontendMessage) {
	o.t.Helper()
	for _, m := range messages {
		o.pg.Send(m)
	}
	if err := o.pg.Flush(); err != nil {
		o.t.Fatal(err)
	}
}

// answer is what the console says up to a ReadyForQuery, one line for each message.
func (o *operator) answer() string {
	o.t.Helper()
	var lines []string
	for {
		switch m := o.receive().(type) {
		case *pgproto3.ReadyForQuery:
			return strings.Join(lines, "\n")
		case *pgproto3.RowDescription:
			var names []string
			for _, f := range m.Fields {
				names = append(names, fmt.Sprintf("%s:%d/%d", f.Name, f.DataTypeOID, f.Format))
			}
			lines = append(lines, "columns "+strings.Join(names, " "))
		case *pgproto3.DataRow:
			var values []string
			for _, v := range m.Values {
				if v == nil {
					values = append(values, "NULL")
					continue
				}
				values = append(values, string(v))
			}
			lines = append(lines, "row "+strings.Join(values, "|"))
		case *pgproto3.CommandComplete:
			lines = append(lines, "done "+string(m.CommandTag))
		case *pgproto3.ErrorResponse:
			lines = append(lines, fmt.Sprintf("%s %s %s. %s", m.Severity, m.Code, m.Message, m.Hint))
		case *pgproto3.NoticeResponse:
			lines = append(lines, "NOTICE "+m.Message)
		default:
			lines = append(lines, strings.TrimPrefix(fmt.Sprintf("%T", m), "*pgproto3."))
		}
	}
}

// ask says a command in the simple protocol.
func (o *operator) ask(command string) string {
	o.t.Helper()
	o.say(&pgproto3.Query{String: command})
	return o.answer()
}

var errFake = errors.New("it does not work")

func (f *fake) MemoryAccount() (memory.Account, error) {
	return memory.Account{Lines: []memory.Line{{Name: "rss", Bytes: 100, Doc: "all"}, {Name: "rss/ledger/clients", Bytes: 10, Items: 2, Limit: 50, Doc: "clients"}}}, nil
}

func (f *fake) ClientMemory() []ConnMemory {
	return []ConnMemory{{ID: 41, Database: "app", User: "ann", Addr: "10.0.0.9", Port: 40000, Used: 1, Allocated: 2, Statements: 3, Total: 4}}
}

func (f *fake) ServerMemory() []ConnMemory {
	return []ConnMemory{{ID: 7, Database: "app", User: "ann", Addr: "10.0.0.5", Port: 5432, PID: 99, Used: 1, Allocated: 2, Statements: 3, Total: 4}}
}

func (f *fake) QueryCache() []CachedQuery {
	return []CachedQuery{{Query: "SELECT 1", Hits: 2, Bytes: 3, Idle: time.Second}, {Query: "SELECT 2", Hits: 5, Bytes: 3}}
}

func (f *fake) ResetQueryCache() { _ = f.tell("reset query_cache") }

func (f *fake) Bans() []BanRow {
	return []BanRow{{ID: 8, Place: somePlace, Reason: "down", Left: 1500 * time.Millisecond}, {ID: 9, Place: somePlace, Reason: "wanted", Left: -1}}
}

func (f *fake) Replication() []ReplicationRow {
	return []ReplicationRow{
		{ID: 7, Place: somePlace, Known: true, LSN: 0x1_0000_00AB, Age: time.Second}, {ID: 8, Place: somePlace},
		{ID: 9, Place: somePlace, Known: true, Recovering: true, LSN: 0xFF, Lag: 20 * time.Millisecond, Age: time.Second},
	}
}

// found is how many pools an id is for.
func found(id uint64) int {
	if id == 0 || id == 7 {
		return 1
	}
	return 0
}

func (f *fake) Ban(id uint64) int      { _ = f.tell("ban %d", id); return found(id) }
func (f *fake) Unban(id uint64) int    { _ = f.tell("unban %d", id); return found(id) }
func (f *fake) CheckNow(id uint64) int { _ = f.tell("check %d", id); return found(id) }
