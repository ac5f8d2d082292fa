package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"runtime"
	"strconv"
	"time"

	"github.com/pgebb/pgebb/admin"
	"github.com/pgebb/pgebb/backend"
	"github.com/pgebb/pgebb/config"
	"github.com/pgebb/pgebb/pool"
)

// Sample implements [admin.Scrapes]. What it costs depends on pools and servers, not on
// clients.
func (p *pooler) Sample() (admin.Sample, error) {
	account, err := p.accountant.Account()
	if err != nil {
		return admin.Sample{}, err
	}
	cfg := p.cfg.Load()
	statements := p.registry.Registry()
	maxBytes, unused := pool.StatementLimits(cfg)
	p.judge.Settle()
	cached, judged := p.judge.Cache().Stats(), p.judge.Stats()
	s := admin.Sample{
		Clients: p.frontend.Count(), LoggingIn: p.frontend.LoggingIn(),
		PreparedLimit: unused, Prepared: statements.Len(), PreparedBytes: statements.Bytes(), PreparedMaxBytes: maxBytes, PreparedDropped: statements.Evicted(),
		Listeners:  p.Listeners(),
		CacheLimit: cfg.General.QueryCacheLimit,
		Cache:      admin.CacheSample{Hits: cached.Hits, Misses: cached.Misses, Entries: cached.Entries, Bytes: p.judge.Bytes(), ParseTime: judged.Taken},
		Refused:    p.frontend.Errors(), Errors: p.registry.Errors(),
		QueryLogDropped: p.queries.Dropped(),
		Loops:           len(p.loops.Loops()), LoopsUsed: p.loops.Used(), Batched: p.loops.Batched(), Memory: account, Version: version(), GoVersion: runtime.Version(),
	}
	counters := p.registry.AllCounters()
	rows, locked := p.poolRows(counters, nil)
	for i, pl := range p.registry.Pools() {
		n := counters[pl]
		if n == nil || i >= len(rows) {
			continue // it has just come
		}
		sample := admin.PoolSample{
			PoolRow: rows[i], Locked: locked[pl], Total: total(n),
			ConnectFailures: n.ConnectFailures, Lost: n.Lost, CheckoutTimeouts: n.CheckoutTimeouts, ForceClosed: n.ForceClosed,
			WaitTimes: histogram(&n.WaitTimes), QueryTimes: histogram(&n.QueryTimes), TransactionTimes: histogram(&n.TransactionTimes),
			LoginTimes: histogram(&n.LoginTimes), ConnectTimes: histogram(&n.ConnectTimes),
		}
		if x, known := p.registry.Replication(pl); known && x.Recovering {
			sample.Lag = x.Lag
		}
		s.Pools = append(s.Pools, sample)
	}
	return s, nil
}

// total is the counters as the console shows them.
func total(n *backend.Counters) admin.Counters {
	return admin.Counters{
		Transactions: n.Transactions, Queries: n.Queries, Assignments: n.Checkouts, Received: n.Received, Sent: n.Sent,
		TransactionTime: time.Duration(n.TransactionTime), IdleTransactionTime: time.Duration(n.IdleTransactionTime),
		QueryTime: time.Duration(n.QueryTime), WaitTime: time.Duration(n.WaitTime),
		Parses: n.ParseMessages, Binds: n.BindMessages, Closes: n.CloseMessages,
		Errors: n.Errors, Cleaned: n.Cleaned, Rollbacks: n.Rollbacks, ConnectTime: time.Duration(n.ConnectTime), Connects: n.Connects,
		Reads: n.Reads, Writes: n.Writes, AuthAttempts: n.AuthAttempts,
		RowsInserted: n.RowsInserted, RowsUpdated: n.RowsUpdated, RowsDeleted: n.RowsDeleted,
		ClientParses: n.ClientParses, Logins: n.Logins, Evictions: n.Evictions,
	}
}

func histogram(h *backend.Histogram) admin.Histogram {
	return admin.Histogram{Upper: backend.Bounds[:], Counts: h.Counts[:], Sum: time.Duration(h.Sum)}
}

// Healthy is how many pools there are, and how many of them can connect.
func (p *pooler) Healthy() (healthy, all int) {
	for _, pl := range p.registry.Pools() {
		all++
		if !pl.Status().Failing {
			healthy++
		}
	}
	return healthy, all
}

// listenHTTP starts what the configuration wants to be served over HTTP: metrics, and
// whether pgebb is well.
func (p *pooler) listenHTTP(cfg *config.Config) error {
	g := &cfg.General
	if g.OpenmetricsPort != 0 {
		h, err := p.console.Metrics(p, g.OpenmetricsNamespace)
		if err != nil {
			return fmt.Errorf("openmetrics_namespace %q: %w", g.OpenmetricsNamespace, err)
		}
		if err := p.serveHTTP("metrics", g.OpenmetricsHost, g.OpenmetricsPort, h); err != nil {
			return err
		}
	}
	if g.HealthcheckPort != 0 {
		return p.serveHTTP("health checks", g.Host, g.HealthcheckPort, admin.Liveness{Draining: p.frontend.Draining, Pools: p})
	}
	return nil
}

func (p *pooler) serveHTTP(what, host string, port int, h http.Handler) error {
	ln, err := net.Listen("tcp", net.JoinHostPort(host, strconv.Itoa(port)))
	if err != nil {
		return fmt.Errorf("listening for %s: %w", what, err)
	}
	server := admin.NewHTTPServer(h)
	p.http = append(p.http, server)
	p.log.Info("listening for "+what, "address", ln.Addr().String())
	p.serving.Go(func() {
		if err := server.Serve(ln); !errors.Is(err, http.ErrServerClosed) {
			p.log.Error("serving "+what+" has ended", "error", err)
		}
	})
	return nil
}

// closeHTTP ends that, and what is being served with it.
func (p *pooler) closeHTTP() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	for _, server := range p.http {
		if server.Shutdown(ctx) != nil {
			_ = server.Close()
		}
	}
	p.serving.Wait()
}
