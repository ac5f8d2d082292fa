package main

import (
	"fmt"
	"slices"
)

// sample is what one measurement of one system has found: figures by the keys of
// metrics. A figure that the system does not have, such as the processor time of a
// Postgres with its many processes, is not there.
type sample map[string]float64

// scenario is one thing that is measured.
type scenario struct {
	name, title string
	metrics     []metric
	measure     func(b *rig, s *system) (sample, error) // drives one system once
	auth        string                                  // how clients log in unless -auth says so; empty for trust
	fresh       bool                                    // poolers that have done nothing yet are measured in each round, all at once
	tls         bool                                    // the connections of clients are encrypted
	pooler      bool                                    // Postgres itself is not measured
	named       bool                                    // it takes a pooler that carries prepared statements
	bare        bool                                    // PgBouncer has the password, as pgebb has, and not Postgres's verifier of it
}

// metric is a figure of a scenario.
type metric struct {
	key, name, unit string
	ratio           float64 // bound of the first system's figure in the second's; 0 for none
	value           float64 // bound of the first system's figure itself; 0 for none
	more            bool    // the bound is a least
}

// target is the bound in words; empty if there is none.
func (m metric) target() string {
	sign := "≤"
	if m.more {
		sign = "≥"
	}
	switch {
	case m.ratio > 0:
		return fmt.Sprintf("%s %.2f×", sign, m.ratio)
	case m.value > 0:
		return fmt.Sprintf("%s %g %s", sign, m.value, m.unit)
	}
	return ""
}

var (
	selectMetrics = []metric{
		{key: "cpu_us", name: "CPU per transaction", unit: "µs", ratio: 1},
		{key: "tps", name: "transactions per second", ratio: 1, more: true},
		{key: "switches", name: "voluntary context switches per transaction"},
		{key: "syscalls", name: "system calls per transaction"},
	}
	rate = metric{key: "mb_per_s", name: "MB per second"}
)

var scenarios = []scenario{
	{
		name: "simple", title: "`SELECT 1`, simple protocol, 16 clients, pool 20",
		metrics: selectMetrics,
		measure: func(b *rig, s *system) (sample, error) { return b.pgbench(s, "simple") },
	},
	{
		name: "extended", title: "`SELECT 1`, extended protocol, 16 clients, pool 20",
		metrics: selectMetrics,
		measure: func(b *rig, s *system) (sample, error) { return b.pgbench(s, "extended") },
	},
	{
		name: "prepared", title: "`SELECT 1`, prepared, 16 clients, pool 20", named: true,
		metrics: []metric{
			{key: "cpu_us", name: "CPU per transaction", unit: "µs", ratio: 0.95},
			{key: "tps", name: "transactions per second"},
			{key: "switches", name: "voluntary context switches per transaction"},
			{key: "syscalls", name: "system calls per transaction"},
		},
		measure: func(b *rig, s *system) (sample, error) {
			protocol := "prepared"
			if s.extended {
				protocol = "extended"
			}
			return b.pgbench(s, protocol)
		},
	},
	{
		name: "results", title: "results of 10 MB in 10,000 rows of 1,000 bytes, 4 clients",
		metrics: []metric{{key: "cpu_ms", name: "CPU per result", unit: "ms", ratio: 0.6}, rate},
		measure: func(b *rig, s *system) (sample, error) { return b.results(s, 10_000, 1_000) },
	},
	{
		// Where the cost is per row rather than per byte.
		name: "rows", title: "results of 10 MB in 100,000 rows of 100 bytes, 4 clients",
		metrics: []metric{{key: "cpu_ms", name: "CPU per result", unit: "ms"}, rate},
		measure: func(b *rig, s *system) (sample, error) { return b.results(s, 100_000, 100) },
	},
	{
		name: "idle", title: "idle clients, ten seconds after one query each", fresh: true, pooler: true,
		metrics: []metric{
			{key: "rss_b", name: "RSS per client", unit: "B", value: 700},
			{key: "clients", name: "clients"},
			{key: "before_mb", name: "RSS before, without clients", unit: "MB"},
		},
		measure: (*rig).idle,
	},
	{
		name: "logins", title: "logins with one query each, 32 at a time", auth: "md5", pooler: true, // Postgres does not take them by md5
		metrics: []metric{
			{key: "cpu_us", name: "CPU per login", unit: "µs"},
			{key: "per_s", name: "logins per second"},
		},
		measure: (*rig).logins,
	},
}

// names are the scenarios'.
func names() []string {
	var all []string
	for _, sc := range scenarios {
		all = append(all, sc.name)
	}
	return all
}

// result is what a scenario has found.
type result struct {
	scenario
	systems []*system           // those that were measured, the first against the second
	samples map[string][]sample // by the system's name, one for each round
}

// freshest is the most rounds with poolers that have done nothing yet: they take long.
const freshest = 5

// run measures all systems in turn, round by round.
func (b *rig) run(sc scenario) (result, error) {
	got := result{scenario: sc, samples: map[string][]sample{}}
	first, last := 0, b.o.rounds // the first round warms up
	if sc.fresh {
		first, last = 1, min(b.o.rounds, freshest)
		if b.pg == nil {
			last = 1 // what runs already is fresh only once
		}
	}
	for round := first; round <= last; round++ {
		if err := b.prepare(sc); err != nil {
			return result{}, err
		}
		got.systems = slices.Clone(b.systems)
		if sc.named && b.bouncer != "" && !b.bouncerNames {
			got.systems = withItself(got.systems[0])
		}
		if !sc.pooler && b.direct != nil {
			got.systems = append(got.systems, b.direct)
		}
		fmt.Fprintf(b.progress, "%s: round %d of %d\n", sc.name, round, last)
		found, err := b.round(sc, got.systems, round)
		if err != nil {
			return result{}, err
		}
		for i, s := range got.systems {
			if round > 0 {
				got.samples[s.name] = append(got.samples[s.name], found[i])
			}
		}
	}
	return got, nil
}

// withItself compares a pooler with what it takes for statements that are not prepared, for
// want of another pooler that carries those that are.
func withItself(s *system) []*system {
	other := *s
	other.name += ", extended"
	other.extended = true
	return []*system{s, &other}
}

// round measures each system once: one after the other, or all at once if they are
// fresh, since what takes long is then to wait.
func (b *rig) round(sc scenario, systems []*system, round int) ([]sample, error) {
	found := make([]sample, len(systems))
	measure := func(i int) (err error) {
		if found[i], err = sc.measure(b, systems[i]); err != nil {
			err = fmt.Errorf("%s: %w", systems[i].name, err)
		}
		return err
	}
	if sc.fresh {
		return found, inParallel(len(systems), measure)
	}
	for i := range systems {
		if err := measure((i + round) % len(systems)); err != nil {
			return nil, err
		}
	}
	return found, nil
}
