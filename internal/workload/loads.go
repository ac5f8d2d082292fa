package main

import (
	"errors"
	"fmt"
	"sync"
	"time"
)

// load is something that clients do.
type load struct {
	name    string
	title   string
	pool    int    // servers
	general string // lines for [general] of pgebb
	do      func(r *run) error
	targets []target
}

// target is what a run should come to.
type target struct {
	what   string
	phase  string
	value  func(r *run, p phase) float64
	most   float64 // at full scale
	unit   string
	scaled bool // it means something at any scale
}

// settled is how long nothing happens before memory is read that should have gone back.
const settled = 10 * time.Second

// loads are all there are.
var loads = []load{
	{
		name: "connections", title: "5,000 clients come, ask once, do nothing, and go", pool: 20, do: comeAndGo,
		targets: []target{
			{what: "over the baseline while they do nothing", phase: "held", value: overBaseline, most: 3.5, unit: "MiB"},
			{what: "over the baseline after they left", phase: "left", value: overBaseline, most: 2, unit: "MiB"},
		},
	},
	{
		name: "large-queries", title: "500 clients with queries of 3 MB, 10 servers", pool: 10, do: largeQueries,
		targets: []target{
			{what: "most at any time", phase: "load", value: peak, most: 32, unit: "MiB"},
			{what: "over the baseline after the last query", phase: "after", value: overBaseline, most: 4, unit: "MiB"},
		},
	},
	{
		name: "slow-readers", title: "50 clients read results of 50 MB slowly, 20 servers", pool: 20, do: slowReaders,
		targets: []target{
			{what: "most at any time", phase: "load", value: peak, most: 32, unit: "MiB"},
			{what: "over the baseline after the last result", phase: "after", value: overBaseline, most: 4, unit: "MiB"},
		},
	},
	statementLoad("statements", 200_000),
	statementLoad("million-statements", 1_000_000),
	{
		name: "redefine", title: "100 clients define and close 100,000 statements each", pool: 10, do: redefine,
		general: "prepared_statements = \"extended\"\n",
		targets: []target{
			{what: "most at any time, over the baseline", phase: "load", value: func(r *run, p phase) float64 { return mib(p.most - r.baseline()) }, most: 16, unit: "MiB", scaled: true},
			{what: "over the baseline after they left", phase: "left", value: overBaseline, most: 8, unit: "MiB"},
		},
	},
}

func statementLoad(name string, n int) load {
	return load{
		name: name, title: fmt.Sprintf("16 clients prepare %d statements of about 200 bytes, keep them, and leave", n), pool: 10,
		general: "prepared_statements = \"extended\"\nprepared_statements_limit = 100\nprepared_statements_memory_limit = 1_000_000_000\n",
		do:      func(r *run) error { return statements(r, n) },
		targets: []target{
			{what: "for each statement at the peak", phase: "load", value: perStatement(n, func(p phase) int64 { return p.most }), most: 600, unit: "B", scaled: true},
			{what: "for each statement while held", phase: "held", value: perStatement(n, func(p phase) int64 { return p.rss }), most: 450, unit: "B", scaled: true},
			{what: "over the baseline after they left", phase: "left", value: overBaseline, most: 8, unit: "MiB"},
		},
	}
}

func names() []string {
	var all []string
	for _, l := range loads {
		all = append(all, l.name)
	}
	return all
}

func mib(bytes int64) float64 { return float64(bytes) / (1 << 20) }

func overBaseline(r *run, p phase) float64 { return mib(p.rss - r.baseline()) }
func peak(_ *run, p phase) float64         { return mib(p.most) }

func perStatement(n int, of func(phase) int64) func(*run, phase) float64 {
	return func(r *run, p phase) float64 { return float64(of(p)-r.baseline()) / float64(r.scaled(n)) }
}

// run is one time that a load is put on a pooler.
type run struct {
	load   load
	system *system
	scale  float64
	meter  *meter
	quick  float64  // MiB over the baseline from which on settle need not wait any longer; 0 for none
	done   []string // what the clients have to say for themselves
}

// scaled is as much of n as is to be done.
func (r *run) scaled(n int) int { return max(int(float64(n)*r.scale), 1) }

// phase ends a phase.
func (r *run) phase(name string) error {
	_, err := r.meter.phase(name)
	return err
}

// settle waits until memory that is not needed should have gone back, and ends a phase.
func (r *run) settle(name string) error {
	if r.quick == 0 {
		pause(settled)
		return r.phase(name)
	}
	for end := time.Now().Add(2 * settled); time.Now().Before(end); {
		pause(sampleEvery)
		rss, err := exactRSS(r.system.pid)
		if base := r.baseline(); err != nil || base > 0 && mib(rss-base) <= r.quick {
			break
		}
	}
	return r.phase(name)
}

// find is a phase that has ended.
func (r *run) find(name string) (phase, bool) {
	for _, p := range r.meter.phases {
		if p.name == name {
			return p, true
		}
	}
	return phase{}, false
}

// baseline is the resident bytes before anything was done.
func (r *run) baseline() int64 {
	p, _ := r.find("baseline")
	return p.rss
}

// pause lets time pass in which nothing is done, which is what is measured.
func pause(d time.Duration) { time.Sleep(d) }

// each runs f for n clients at once, and returns when all have ended.
func each(n int, f func(i int) error) error {
	var wg sync.WaitGroup
	errs := make([]error, n)
	for i := range n {
		wg.Go(func() { errs[i] = f(i) })
	}
	wg.Wait()
	return errors.Join(errs...)
}
