package main

import (
	"context"
	"log/slog"
	"time"

	"github.com/pgebb/pgebb/admin"
	"github.com/pgebb/pgebb/cache"
	"github.com/pgebb/pgebb/config"
	"github.com/pgebb/pgebb/internal/memory"
	"github.com/pgebb/pgebb/parser"
)

// sweepInterval is how often the query cache is swept.
const sweepInterval = time.Second

// newJudge makes the judge of SQL texts. What it keeps gives way when memory is short.
func (p *pooler) newJudge(cfg *config.Config) *parser.Judge {
	limits, slow := judgeLimits(cfg, p.budget)
	j := parser.NewJudge(parser.Options{Limits: limits, Slow: slow, Report: p.slowParse})
	p.budget.OnPressure(j.Shed)
	warmParser(cfg)
	return j
}

// warmParser has the parser ready before a client needs it, if all statements are parsed.
func warmParser(cfg *config.Config) {
	for _, pl := range cfg.Pools() {
		if pl.Parser == config.ParserOn {
			parser.Warm()
			return
		}
	}
}

func judgeLimits(cfg *config.Config, budget *memory.Budget) (limits cache.TreeLimits, slow time.Duration) {
	g := &cfg.General
	limits = cache.TreeLimits{Entries: max(g.QueryCacheLimit, 1), Bytes: int64(g.QueryCacheMemoryLimit), Idle: g.QueryCacheIdleTimeout}
	if part := memory.ReserveForCache(budget.Limit()); part > 0 && (limits.Bytes == 0 || part < limits.Bytes) {
		limits.Bytes = part
	}
	if g.QueryCacheIdleTimeout == config.Off {
		limits.Idle = 0
	}
	if slow = g.LogMinDurationParse; slow == config.Off {
		slow = 0
	}
	return limits, slow
}

// sweepQueries keeps the query cache to its idle time, until ctx ends.
func (p *pooler) sweepQueries(ctx context.Context) {
	ticker := time.NewTicker(sweepInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			p.judge.Sweep(time.Since(p.started))
		}
	}
}

func (p *pooler) slowParse(s parser.Parse) {
	text := s.Text
	if limit := p.cfg.Load().General.LogQuerySampleLength; len(text) > limit {
		text = text[:limit] + "…"
	}
	p.log.Warn("a statement took long to parse", "duration", s.Duration, "tokens", s.Tokens, slog.String("query", text))
}

// queryCacheMemory is what the query cache holds, for the ledger.
func (p *pooler) queryCacheMemory() []memory.Holding {
	limits, _ := judgeLimits(p.cfg.Load(), p.budget)
	h := memory.Holding{
		Name: "query_cache", Doc: "verdicts on statements, and their syntax trees", Bytes: p.judge.Bytes(),
		Items: int64(p.judge.Cache().Stats().Entries), Limit: limits.Bytes,
	}
	if h.Limit > 0 {
		h.Limit += parser.MemoBytes
	}
	return []memory.Holding{h}
}

// QueryCache implements the console's source of SHOW QUERY_CACHE.
func (p *pooler) QueryCache() []admin.CachedQuery {
	var all []admin.CachedQuery
	p.judge.Settle()
	for _, e := range p.judge.Cache().Entries() {
		all = append(all, admin.CachedQuery{Query: e.Text, Hits: e.Hits, Bytes: e.Bytes, Idle: e.Idle})
	}
	return all
}

// ResetQueryCache implements the console's RESET QUERY_CACHE.
func (p *pooler) ResetQueryCache() { p.judge.Reset() }
