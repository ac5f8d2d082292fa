package main

import (
	"context"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/pgebb/pgebb/backend"
	"github.com/pgebb/pgebb/cache"
	"github.com/pgebb/pgebb/config"
	"github.com/pgebb/pgebb/frontend"
	"github.com/pgebb/pgebb/internal/loop"
	"github.com/pgebb/pgebb/internal/querylog"
	"github.com/pgebb/pgebb/parser"
)

// started is a pooler that listens at a Unix socket and has no servers.
func started(t *testing.T) *pooler {
	t.Helper()
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	src := config.Source{
		ConfigPath: write("pgdog.toml", "[general]\nhost = \"127.0.0.1\"\n[admin]\npassword = \"x\"\n[memory]\nlimit = 67_108_864\n[[databases]]\nname = \"d\"\nhost = \"127.0.0.1\"\n"),
		UsersPath:  write("users.toml", "[[users]]\nname = \"u\"\npassword = \"p\"\ndatabase = \"d\"\n"),
	}
	cfg, problems := config.Load(src)
	if err := problems.Err(); err != nil {
		t.Fatal(err)
	}
	cfg.General.Port = 0
	log := slog.New(slog.DiscardHandler)
	p := &pooler{src: src, log: log, queries: querylog.New(io.Discard, log)}
	if err := p.start(cfg); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		p.frontend.Close()
		p.registry.Close(ctx)
		p.loops.Stop()
	})
	return p
}

// TestMemoryDocumentListsEveryLine compares docs/memory.md with what SHOW MEMORY has.
func TestMemoryDocumentListsEveryLine(t *testing.T) {
	p := started(t)
	account, err := p.MemoryAccount()
	if err != nil {
		t.Fatal(err)
	}
	var documented []string
	for _, cell := range submatches(`(?m)^\| (`+"`[^|]+`"+`) \|`, read(t, "docs/memory.md")) {
		documented = append(documented, submatches("`([^`]+)`", cell)...)
	}
	var lines []string
	for _, l := range account.Lines {
		name := strings.TrimPrefix(l.Name, "rss/ledger/")
		lines = append(lines, name)
		sum := l.Name == "rss/go" || l.Name == "rss/c" || l.Name == "rss/program"
		if !sum && !slices.Contains(documented, name) {
			t.Errorf("docs/memory.md does not have %s", name)
		}
	}
	for _, name := range documented {
		if !slices.Contains(lines, name) {
			t.Errorf("docs/memory.md has %s, which is no line", name)
		}
	}
}

func TestMemoryDocumentHasTheCosts(t *testing.T) {
	text := read(t, "docs/memory.md")
	for what, want := range map[string]int64{
		"a client that does nothing":                         frontend.ClientCost,
		"a prepared statement, besides its text":             cache.StatementCost,
		"its text, besides what is in it":                    cache.TextCost,
		"its place in the table of all":                      cache.EntryCost,
		"a client's name for one":                            cache.NameCost,
		"the same with more than 11 bytes, besides its text": cache.NameCost + cache.LongNameCost,
		"a server, besides what Postgres told at its login":  backend.ServerCost,
		"a prepared statement on a server":                   backend.KeptCost,
		"an encrypted connection":                            loop.TLSCost,
	} {
		m := regexp.MustCompile(`(?m)^\| ` + regexp.QuoteMeta(what) + ` \| (\d+) \|$`).FindStringSubmatch(text)
		if m == nil {
			t.Errorf("docs/memory.md has no line for %s", what)
			continue
		}
		if got, err := strconv.ParseInt(m[1], 10, 64); err != nil || got != want {
			t.Errorf("%s takes %d bytes, docs/memory.md says %s", what, want, m[1])
		}
	}
}

// TestTheLimitIsSharedOut holds the parts that are documented.
func TestTheLimitIsSharedOut(t *testing.T) {
	p := started(t)
	account, err := p.MemoryAccount()
	if err != nil {
		t.Fatal(err)
	}
	limits := map[string]int64{}
	for _, l := range account.Lines {
		limits[l.Name] = l.Limit
	}
	for name, want := range map[string]int64{
		"budget": 64 << 20, "budget/transit": 16 << 20, "rss/ledger/statement_texts": 16 << 20,
		"rss/ledger/query_cache": 8<<20 + parser.MemoBytes,
	} {
		if got := limits[name]; got != want {
			t.Errorf("%s may have %d bytes, want %d", name, got, want)
		}
	}
}
