package main

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/pgebb/pgebb/internal/verdict"
)

// parsed returns a pooler that keeps the parse of one statement, which it was asked for twice.
func parsed(t *testing.T) *pooler {
	t.Helper()
	p := started(t)
	for range 2 {
		p.judge.Judge([]byte("WITH x AS (SELECT 1) SELECT * FROM x"), verdict.Tree)
	}
	p.judge.Wait()
	return p
}

func TestTheMetricsHaveTheQueryCache(t *testing.T) {
	s, err := parsed(t).Sample()
	if err != nil {
		t.Fatal(err)
	}
	if c := s.Cache; c.Hits != 1 || c.Misses != 1 || c.Entries != 1 || c.Bytes <= 0 || c.ParseTime <= 0 {
		t.Errorf("%+v", c)
	}
}

func TestTheQueryCacheGivesWayWhenMemoryIsShort(t *testing.T) {
	p := parsed(t)
	ctx, stop := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { p.reclaim.Run(ctx) })
	defer func() { stop(); running.Wait() }()
	short := p.budget.Limit() / 4
	p.budget.Transit(short)
	defer p.budget.Transit(-short)
	for deadline := time.Now().Add(30 * time.Second); p.judge.Bytes() > 0; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%d bytes are kept", p.judge.Bytes())
		}
	}
}
