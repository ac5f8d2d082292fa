package admin

import (
	"maps"
	"slices"
)

func boolValue(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

// ourFamilies are those that PgDog has not.
func ourFamilies() []Family {
	all := []Family{
		{Name: "pgebb_build_info", Kind: gauge, Labels: []string{"version", "go"}, Doc: "Always 1: the version of pgebb and of Go.",
			many: func(s *Sample, out func(float64, ...string)) { out(1, s.Version, s.GoVersion) }},
		ofAll("pgebb_logging_in", gauge, "Connections that are not logged in yet, or are the console's.", func(s *Sample) float64 { return float64(s.LoggingIn) }),
		{Name: "pgebb_errors_total", Kind: counter, Labels: []string{"side", "sqlstate"},
			Doc: "Errors that clients were told, by who said it, pgebb or server, and by SQLSTATE.", many: manyErrors},
		ofAll("pgebb_query_log_dropped_total", counter, "Lines that query_log lacks, because they came faster than they could be written, or because writing failed.", func(s *Sample) float64 { return float64(s.QueryLogDropped) }),
		ofAll("pgebb_loops", gauge, "Event loops that may run (workers).", func(s *Sample) float64 { return float64(s.Loops) }),
		ofAll("pgebb_loops_used", gauge, "Event loops that new connections go to.", func(s *Sample) float64 { return float64(s.LoopsUsed) }),
	}
	all = append(all, poolFamilies()...)
	return append(all, memoryFamilies()...)
}

// poolFamilies are those of a pool.
func poolFamilies() []Family {
	return []Family{
		ofTimes("pgebb_wait_seconds", "How long clients waited for a server, at each checkout.", func(p *PoolSample) Histogram { return p.WaitTimes }),
		ofTimes("pgebb_query_seconds", "How long Postgres took for what a client asked, up to when all of it was answered.", func(p *PoolSample) Histogram { return p.QueryTimes }),
		ofTimes("pgebb_transaction_seconds", "How long transactions took.", func(p *PoolSample) Histogram { return p.TransactionTimes }),
		ofTimes("pgebb_login_seconds", "How long logins of clients took, from the connection to the first ReadyForQuery.", func(p *PoolSample) Histogram { return p.LoginTimes }),
		ofTimes("pgebb_connect_seconds", "How long connecting to Postgres took where it worked, with the login.", func(p *PoolSample) Histogram { return p.ConnectTimes }),
		ofPool("pgebb_pool_healthy", gauge, "1 unless the latest attempt to connect has failed.", func(p *PoolSample) float64 { return boolValue(p.Healthy) }),
		ofPool("pgebb_pool_paused", gauge, "1 while PAUSE, MAINTENANCE or KILL make clients wait.", func(p *PoolSample) float64 { return boolValue(p.Paused) }),
		ofPool("pgebb_pool_banned", gauge, "1 while the host gets no reads.", func(p *PoolSample) float64 { return boolValue(p.Banned) }),
		ofPool("pgebb_pool_connecting", gauge, "Servers that are being connected.", func(p *PoolSample) float64 { return float64(p.Connecting) }),
		ofPool("pgebb_pool_replica_lag_seconds", gauge, "How far a replica is behind, at least; 0 for a primary, and if it is not asked (lsn_check_delay).", func(p *PoolSample) float64 { return p.Lag.Seconds() }),
		ofPool("pgebb_pool_checkouts_total", counter, "Times that a client was given a server.", func(p *PoolSample) float64 { return float64(p.Total.Assignments) }),
		ofPool("pgebb_pool_checkout_timeouts_total", counter, "Clients that waited for longer than checkout_timeout.", func(p *PoolSample) float64 { return float64(p.CheckoutTimeouts) }),
		ofPool("pgebb_pool_logins_total", counter, "Clients that have logged in.", func(p *PoolSample) float64 { return float64(p.Total.Logins) }),
		ofPool("pgebb_pool_connect_failures_total", counter, "Attempts to connect to Postgres that failed.", func(p *PoolSample) float64 { return float64(p.ConnectFailures) }),
		ofPool("pgebb_pool_servers_lost_total", counter, "Servers whose connection ended without pgebb's doing.", func(p *PoolSample) float64 { return float64(p.Lost) }),
		ofPool("pgebb_pool_servers_force_closed_total", counter, "Servers that were closed while Postgres was at work.", func(p *PoolSample) float64 { return float64(p.ForceClosed) }),
		ofPool("pgebb_pool_servers_resynced_total", counter, "Servers whose clients left in the middle of something that was brought to its end.", func(p *PoolSample) float64 { return float64(p.Resynced) }),
		ofPool("pgebb_pool_client_parses_total", counter, "Parse messages of clients.", func(p *PoolSample) float64 { return float64(p.Total.ClientParses) }),
		ofPool("pgebb_pool_server_parses_total", counter, "Parse messages that were sent to Postgres.", func(p *PoolSample) float64 { return float64(p.Total.Parses) }),
	}
}

// memoryFamilies are those about memory and what is kept in it.
func memoryFamilies() []Family {
	return []Family{
		ofAll("pgebb_prepared_statements_limit_bytes", gauge, "prepared_statements_memory_limit; without one, what holds in its place.", func(s *Sample) float64 { return float64(s.PreparedMaxBytes) }),
		ofAll("pgebb_prepared_statements_dropped_total", counter, "Prepared statements that nobody used and that were forgotten.", func(s *Sample) float64 { return float64(s.PreparedDropped) }),
		ofAll("pgebb_query_cache_bytes", gauge, "What the cache of parsed statements takes.", func(s *Sample) float64 { return float64(s.Cache.Bytes) }),
		{Name: "pgebb_memory_bytes", Kind: gauge, Labels: []string{"part"},
			Doc: "The lines of SHOW MEMORY: rss is all resident memory, rss/x a part of it, rss/x/y a part of that; rss/unaccounted is what nothing explains.",
			many: func(s *Sample, out func(float64, ...string)) {
				for _, l := range s.Memory.Lines {
					out(float64(l.Bytes), l.Name)
				}
			}},
		{Name: "pgebb_memory_items", Kind: gauge, Labels: []string{"part"}, Doc: "How many there are of what is in the ledger.",
			many: func(s *Sample, out func(float64, ...string)) {
				for _, l := range s.Memory.Lines {
					if l.Parent() == "rss/ledger" {
						out(float64(l.Items), l.Name)
					}
				}
			}},
	}
}

func manyErrors(s *Sample, out func(float64, ...string)) {
	for side, counts := range map[string]map[string]uint64{"pgebb": s.Refused, "server": s.Errors} {
		for _, code := range slices.Sorted(maps.Keys(counts)) {
			out(float64(counts[code]), side, code)
		}
	}
}
