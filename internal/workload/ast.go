package main

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/pgebb/pgebb/frontend/frontendtest"
	"github.com/pgebb/pgebb/internal/wire"
)

// treeIdle is query_cache_idle_timeout, and lightFor how long light queries go on after
// the heavy ones, which are gone by then.
const (
	treeIdle = 20 * time.Second
	lightFor = 30 * time.Second
)

// treeLoad is about the cache of parsed statements: it fills with large ones, and then
// small ones are used over and over.
func treeLoad(name, limit string, bytes int64, most float64) load {
	return load{
		name: name, title: fmt.Sprintf("2,000 statements of 300 columns are parsed, and then 100 small ones over and over (%s)", limit), pool: 10, parser: "on", do: trees,
		general: fmt.Sprintf("query_cache_limit = 1000\nquery_cache_memory_limit = %d\nquery_cache_idle_timeout = %d\n", bytes, treeIdle.Milliseconds()),
		targets: []target{
			{what: "over the baseline ten seconds after the large statements", phase: "large", value: overBaseline, most: most, unit: "MiB"},
			{what: "over the baseline when they were idle for long", phase: "small", value: overBaseline, most: 8, unit: "MiB"},
			{what: "over the baseline after 2,000 small ones more", phase: "more", value: overBaseline, most: 10, unit: "MiB"},
		},
	}
}

func largeStatement(i int) string {
	var b strings.Builder
	b.WriteString("SELECT ")
	for k := range 300 {
		if k > 0 {
			b.WriteString(", ")
		}
		fmt.Fprintf(&b, "(%d+%d)*%d AS h_%d_%d", i, k, k+1, i, k)
	}
	fmt.Fprintf(&b, " WHERE %d >= 0", i)
	return b.String()
}

func smallStatement(i int) string { return fmt.Sprintf("SELECT %d AS x_%d WHERE %d >= 0", i, i, i) }

func trees(r *run) error {
	c, err := frontendtest.Connect(r.system.login)
	if err != nil {
		return err
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(time.Hour))
	if err := runAllOnce(c, r.scaled(2000), largeStatement); err != nil {
		return err
	}
	if err := r.phase("load"); err != nil {
		return err
	}
	if err := r.settle("large"); err != nil {
		return err
	}
	for until := time.Now().Add(lightFor); time.Now().Before(until); {
		if err := runAllOnce(c, 100, smallStatement); err != nil {
			return err
		}
		pause(time.Second / 2)
	}
	if err := r.phase("small"); err != nil {
		return err
	}
	if err := runAllOnce(c, r.scaled(2000), func(i int) string { return smallStatement(1000 + i) }); err != nil {
		return err
	}
	return r.settle("more")
}

// runAllOnce runs n statements, without giving them names.
func runAllOnce(c *frontendtest.Client, n int, text func(i int) string) error {
	var b []byte
	for i := 0; i < n; i += batch {
		b = b[:0]
		k := min(batch, n-i)
		for j := i; j < i+k; j++ {
			b = wire.AppendParse(b, "", text(j)+"\x00\x00\x00")
			b = runStatement(b, "")
		}
		if _, err := c.Write(b); err != nil {
			return fmt.Errorf("sending: %w", err)
		}
		_, code, err := drain(c, k)
		if err == nil && code != "" {
			err = errors.New("SQLSTATE " + code)
		}
		if err != nil {
			return fmt.Errorf("after %d statements: %w", i, err)
		}
	}
	return nil
}
