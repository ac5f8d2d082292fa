package admin

import (
	"strings"
	"time"

	"github.com/pgebb/pgebb/internal/memory"
)

// Sample is what a scrape shows.
type Sample struct {
	Pools              []PoolSample
	Clients, LoggingIn int

	PreparedLimit, Prepared         int
	PreparedBytes, PreparedMaxBytes int64
	PreparedDropped                 uint64 // that nobody used

	Listeners []ListenerRow

	CacheLimit int
	Cache      CacheSample

	Refused map[string]uint64 // errors that pgebb itself gave, by SQLSTATE
	Errors  map[string]uint64 // and those that came from Postgres

	QueryLogDropped uint64 // lines that were not written

	Loops, LoopsUsed int
	Batched          int64 // reads and writes made together with others
	Memory           memory.Account

	Version, GoVersion string
}

// CacheSample is the cache of parsed statements.
type CacheSample struct {
	Hits, Misses uint64
	Entries      int
	Bytes        int64
	ParseTime    time.Duration
}

// PoolSample is a pool in a scrape.
type PoolSample struct {
	PoolRow
	Locked                        int // servers that clients keep though they are idle
	Total                         Counters
	ConnectFailures, Lost         uint64
	CheckoutTimeouts, ForceClosed uint64
	Lag                           time.Duration // of a replica; 0 if not known

	WaitTimes, QueryTimes, TransactionTimes, LoginTimes, ConnectTimes Histogram
}

// Histogram counts how often something took how long.
type Histogram struct {
	Upper  []time.Duration // of the buckets
	Counts []uint64        // and one more for what took longer
	Sum    time.Duration
}

// kind is the type of a family of metrics.
type kind string

// The kinds.
const (
	gauge     kind = "gauge"
	counter   kind = "counter"
	histogram kind = "histogram"
)

// Family is a family of metrics. Those of PgDog have its names, to which
// openmetrics_namespace is put in front; ours begin with pgebb_.
type Family struct {
	Name   string
	Kind   kind
	Labels []string
	Doc    string
	Ours   bool

	one   func(s *Sample, c *Console) float64 // for a family without labels
	each  func(p *PoolSample, c *Console) float64
	times func(p *PoolSample) Histogram
	many  func(s *Sample, out func(v float64, labels ...string))
}

// poolLabels are the labels of everything about a pool.
var poolLabels = []string{"user", "database", "host", "port", "shard", "role"}

func ofPool(name string, k kind, doc string, each func(p *PoolSample) float64) Family {
	return Family{Name: name, Kind: k, Labels: poolLabels, Doc: doc, each: func(p *PoolSample, _ *Console) float64 { return each(p) }}
}

func ofAll(name string, k kind, doc string, one func(s *Sample) float64) Family {
	return Family{Name: name, Kind: k, Doc: doc, one: func(s *Sample, _ *Console) float64 { return one(s) }}
}

func ofTimes(name, doc string, times func(p *PoolSample) Histogram) Family {
	return Family{Name: name, Kind: histogram, Labels: poolLabels, Doc: doc, times: times}
}

// Families are all families in the order of the documents.
func Families() []Family {
	all := pgdogFamilies()
	for _, f := range ourFamilies() {
		f.Ours = true
		all = append(all, f)
	}
	return all
}

// pgdogFamilies are those of PgDog that mean something without shards.
func pgdogFamilies() []Family {
	all := []Family{
		ofAll("clients", gauge, "Clients that are logged in.", func(s *Sample) float64 { return float64(s.Clients) }),
		ofAll("clients_locked", gauge, "Clients that keep their server though they are idle.", func(s *Sample) float64 {
			n := 0
			for _, p := range s.Pools {
				n += p.Locked
			}
			return float64(n)
		}),
		ofPool("max_connections", gauge, "Most servers that the pool may have.", func(p *PoolSample) float64 { return float64(p.Size) }),
		ofPool("cl_waiting", gauge, "Clients that wait for a server.", func(p *PoolSample) float64 { return float64(p.Waiting) }),
		ofPool("sv_active", gauge, "Servers that are at work.", func(p *PoolSample) float64 { return float64(p.Active) }),
		ofPool("sv_idle", gauge, "Servers that are free.", func(p *PoolSample) float64 { return float64(p.Idle) }),
		ofPool("sv_idle_xact", gauge, "Servers that are idle in a transaction.", func(p *PoolSample) float64 { return float64(p.IdleInXact) }),
		ofPool("sv_locked", gauge, "Servers that clients keep though they are idle.", func(p *PoolSample) float64 { return float64(p.Locked) }),
		ofPool("maxwait", gauge, "How long the client waits that waits longest, in seconds.", func(p *PoolSample) float64 { return p.MaxWait.Seconds() }),
		ofPool("errors", counter, "Failures to connect, servers that were lost, and clients that waited for too long.", func(p *PoolSample) float64 { return float64(p.Errors) }),
		ofPool("out_of_sync", counter, "Servers that were closed because their clients left in the middle of something.", func(p *PoolSample) float64 { return float64(p.OutOfSync) }),
	}
	all = append(all, statsFamilies()...)
	return append(all,
		ofAll("prepared_statements_limit", gauge, "prepared_statements_limit; without one, what holds in its place.", func(s *Sample) float64 { return float64(s.PreparedLimit) }),
		ofAll("query_cache_limit", gauge, "query_cache_limit.", func(s *Sample) float64 { return float64(s.CacheLimit) }),
		ofAll("prepared_statements", gauge, "Prepared statements of all clients, each text once.", func(s *Sample) float64 { return float64(s.Prepared) }),
		ofAll("prepared_statements_memory_used", gauge, "What they take, in bytes.", func(s *Sample) float64 { return float64(s.PreparedBytes) }),
		ofAll("query_cache_hits", counter, "Statements that were found in the cache of parsed statements.", func(s *Sample) float64 { return float64(s.Cache.Hits) }),
		ofAll("query_cache_misses", counter, "Statements that had to be parsed.", func(s *Sample) float64 { return float64(s.Cache.Misses) }),
		ofAll("query_cache_direct", counter, "Statements that needed one shard only; there is only one.", func(s *Sample) float64 { return float64(s.Cache.Hits + s.Cache.Misses) }),
		ofAll("query_cache_cross", counter, "Statements that needed several shards; always 0.", func(*Sample) float64 { return 0 }),
		ofAll("query_cache_size", gauge, "Entries of the cache of parsed statements.", func(s *Sample) float64 { return float64(s.Cache.Entries) }),
		ofAll("query_cache_parse_time", counter, "Time that parsing took, in milliseconds.", func(s *Sample) float64 { return float64(s.Cache.ParseTime.Milliseconds()) }),
		ofAll("query_cache_fingerprints", counter, "Always 0, as in PgDog.", func(*Sample) float64 { return 0 }),
		ofChannels("pub_sub_listeners", gauge, "Clients that listen to a channel in transaction or statement mode.", func(x *ListenerRow) float64 { return float64(x.Listeners) }),
		ofChannels("pub_sub_listener_received", counter, "Notifications that came for a channel, since somebody has begun to listen to it.", func(x *ListenerRow) float64 { return float64(x.Received) }),
		ofChannels("pub_sub_listener_dropped", counter, "Those of them that were dropped because a client did not take them, counted for each client.", func(x *ListenerRow) float64 { return float64(x.Dropped) }),
	)
}

// ofChannels is a family with a line for each channel that clients listen to.
func ofChannels(name string, k kind, doc string, each func(x *ListenerRow) float64) Family {
	return Family{Name: name, Kind: k, Labels: []string{"database", "user", "shard", "channel"}, Doc: doc, many: func(s *Sample, out func(float64, ...string)) {
		for i := range s.Listeners {
			x := &s.Listeners[i]
			out(each(x), x.Database, x.User, "0", strings.ToValidUTF8(x.Channel, "?"))
		}
	}}
}

// stat is a counter of SHOW STATS as a metric.
type stat struct {
	name, doc string
	total     func(c *Counters) float64
	per       func(c *Counters) uint64 // what its average is divided by; nil for seconds
}

func milli(d time.Duration) float64 { return float64(d) / 1e6 }

// stats are those that PgDog exports.
var stats = []stat{
	{"xact_count", "transactions", func(c *Counters) float64 { return float64(c.Transactions) }, nil},
	{"xact_2pc_count", "two-phase commits; always 0", func(*Counters) float64 { return 0 }, nil},
	{"query_count", "queries: answers up to a ReadyForQuery", func(c *Counters) float64 { return float64(c.Queries) }, nil},
	{"received", "bytes from clients", func(c *Counters) float64 { return float64(c.Received) }, nil},
	{"sent", "bytes to clients", func(c *Counters) float64 { return float64(c.Sent) }, nil},
	{"xact_time", "milliseconds in transactions", func(c *Counters) float64 { return milli(c.TransactionTime) }, func(c *Counters) uint64 { return c.Transactions }},
	{"idle_xact_time", "milliseconds idle in transactions", func(c *Counters) float64 { return milli(c.IdleTransactionTime) }, between},
	{"query_time", "milliseconds in queries", func(c *Counters) float64 { return milli(c.QueryTime) }, func(c *Counters) uint64 { return c.Queries }},
	{"prepared_evictions", "prepared statements that servers were told to drop", func(c *Counters) float64 { return float64(c.Evictions) }, nil},
	{"server_errors", "errors that Postgres answered", func(c *Counters) float64 { return float64(c.Errors) }, nil},
	{"cleaned", "servers that were cleaned after a client", func(c *Counters) float64 { return float64(c.Cleaned) }, nil},
	{"rollbacks", "transactions that clients left open and that were rolled back", func(c *Counters) float64 { return float64(c.Rollbacks) }, nil},
	{"connect_time", "milliseconds of connecting to Postgres", func(c *Counters) float64 { return milli(c.ConnectTime) }, func(c *Counters) uint64 { return c.Connects }},
	{"connect_count", "attempts to connect to Postgres", func(c *Counters) float64 { return float64(c.Connects) }, nil},
	{"reads", "commands that read", func(c *Counters) float64 { return float64(c.Reads) }, func(c *Counters) uint64 { return c.Transactions }},
	{"writes", "commands that write", func(c *Counters) float64 { return float64(c.Writes) }, func(c *Counters) uint64 { return c.Transactions }},
	{"auth_attempts", "logins at Postgres", func(c *Counters) float64 { return float64(c.AuthAttempts) }, nil},
	{"rows_inserted", "rows inserted", func(c *Counters) float64 { return float64(c.RowsInserted) }, nil},
	{"rows_updated", "rows updated", func(c *Counters) float64 { return float64(c.RowsUpdated) }, nil},
	{"rows_deleted", "rows deleted", func(c *Counters) float64 { return float64(c.RowsDeleted) }, nil},
}

// between is how many pauses there were between the queries of transactions.
func between(c *Counters) uint64 { return max(c.Queries, c.Transactions) - c.Transactions }

// statsFamilies are total_ and avg_ of each.
func statsFamilies() []Family {
	var totals, averages []Family
	for _, s := range stats {
		totals = append(totals, ofPool("total_"+s.name, counter, "Since the start: "+s.doc+".", func(p *PoolSample) float64 { return s.total(&p.Total) }))
		averages = append(averages, Family{
			Name: "avg_" + s.name, Kind: gauge, Labels: poolLabels, Doc: "In the last stats_period, " + s.perWhat() + ": " + s.doc + ".",
			each: func(p *PoolSample, c *Console) float64 {
				d, length := c.averages.sum([]uint64{p.ID})
				by := length.Seconds()
				if s.per != nil {
					by = float64(s.per(&d))
				}
				if by <= 0 {
					return 0
				}
				return s.total(&d) / by
			},
		})
	}
	return append(totals, averages...)
}

func (s *stat) perWhat() string {
	switch s.name {
	case "xact_time", "reads", "writes":
		return "per transaction"
	case "idle_xact_time":
		return "per pause in a transaction"
	case "query_time":
		return "per query"
	case "connect_time":
		return "per attempt"
	}
	return "per second"
}

// notExported are the metrics of PgDog that pgebb has not, with the reason.
var notExported = []struct{ name, why string }{
	{"mirror_total_count", "pgebb does not mirror"},
	{"mirror_mirrored_count", "pgebb does not mirror"},
	{"mirror_dropped_count", "pgebb does not mirror"},
	{"mirror_error_count", "pgebb does not mirror"},
	{"mirror_queue_length", "pgebb does not mirror"},
	{"sharding_lookup_cache_hits", "pgebb does not shard"},
	{"sharding_lookup_cache_misses", "pgebb does not shard"},
	{"sharding_lookup_cache_evictions", "pgebb does not shard"},
	{"sharding_lookup_queries", "pgebb does not shard"},
	{"sharding_lookup_query_time", "pgebb does not shard"},
	{"sharding_lookup_cache_bytes", "pgebb does not shard"},
	{"sharding_lookup_cache_entries", "pgebb does not shard"},
	{"two_pc_recovered_total", "there are no two-phase commits without shards"},
}
