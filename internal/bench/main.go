// Command bench compares pgebb with PgBouncer: both before the same throwaway Postgres,
// with the same pool, one after the other in each of several rounds, the order rotating.
//
// What is compared is the pooler's own processor time and memory, read from its
// process; on a machine where clients, poolers and Postgres share the cores, throughput
// says as much of the others. Figures are medians over rounds, with their range.
//
// It reports and does not judge: its exit code is 0 whether or not a target is reached.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"time"
)

// options are the command line's.
type options struct {
	binary  string
	rounds  int
	seconds int
	clients int // that are idle
	only    string
	json    string
}

func main() {
	var o options
	flag.StringVar(&o.binary, "pgebb", "bin/pgebb", "path of pgebb, built without the race detector")
	flag.IntVar(&o.rounds, "rounds", 7, "rounds of each scenario; one more is run before, and not counted")
	flag.IntVar(&o.seconds, "seconds", 4, "length of a measurement with pgbench")
	flag.IntVar(&o.clients, "idle", 4000, "idle clients")
	flag.StringVar(&o.only, "only", "", "run only this `scenario`: simple, extended, results, idle, logins")
	flag.StringVar(&o.json, "json", "", "write all figures to this `file`")
	quick := flag.Bool("quick", false, "three short rounds, to see that it works")
	flag.Parse()
	if *quick {
		o.rounds, o.seconds, o.clients = 3, 2, 1000
	}
	if err := bench(o); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// scenario is one thing that is measured.
type scenario struct {
	name, title string
	metrics     []metric
	// measure drives one system once and returns the metrics' values in order.
	measure func(b *rig, s *system) ([]float64, error)
	once    bool // one round is enough, and each system is started anew for it
}

// metric is a figure of a scenario.
type metric struct {
	name, unit string
	target     string  // in words; empty if there is none
	ratio      float64 // bound of pgebb's figure in PgBouncer's; 0 for none
	value      float64 // bound of pgebb's figure itself; 0 for none
	more       bool    // the bound is a least
}

var scenarios = []scenario{
	{
		name: "simple", title: "`SELECT 1`, simple protocol, 16 clients, pool 20",
		metrics: []metric{
			{name: "CPU per transaction", unit: "µs", target: "at most 1.00×", ratio: 1},
			{name: "transactions per second", target: "at least 1.00×", ratio: 1, more: true},
			{name: "voluntary context switches per transaction"},
		},
		measure: func(b *rig, s *system) ([]float64, error) { return b.pgbench(s, "simple") },
	},
	{
		name: "extended", title: "`SELECT 1`, extended protocol, 16 clients, pool 20",
		metrics: []metric{
			{name: "CPU per transaction", unit: "µs", target: "at most 1.00×", ratio: 1},
			{name: "transactions per second", target: "at least 1.00×", ratio: 1, more: true},
			{name: "voluntary context switches per transaction"},
		},
		measure: func(b *rig, s *system) ([]float64, error) { return b.pgbench(s, "extended") },
	},
	{
		name: "results", title: "results of 10 MB in rows of 1,000 bytes, 4 clients",
		metrics: []metric{
			{name: "CPU per result", unit: "ms", target: "at most 0.60×", ratio: 0.6},
			{name: "MB per second"},
		},
		measure: (*rig).results,
	},
	{
		name: "idle", title: "idle clients, ten seconds after one query each", once: true,
		metrics: []metric{{name: "RSS per client", unit: "B", target: "at most 700 B", value: 700}},
		measure: (*rig).idle,
	},
	{
		name: "logins", title: "logins and one query, 32 at a time",
		metrics: []metric{{name: "logins per second"}, {name: "CPU per login", unit: "µs"}},
		measure: (*rig).logins,
	},
}

func bench(o options) error {
	b, err := newRig(o)
	if err != nil {
		return err
	}
	defer b.close()
	machine(b)
	figures := map[string]map[string][][]float64{}
	for _, sc := range scenarios {
		if o.only != "" && o.only != sc.name {
			continue
		}
		got, err := b.run(sc)
		if err != nil {
			return fmt.Errorf("%s: %w", sc.name, err)
		}
		figures[sc.name] = got
		report(os.Stdout, sc, b.systems, got)
	}
	if o.json == "" {
		return nil
	}
	text, err := json.MarshalIndent(map[string]any{"date": time.Now(), "figures": figures}, "", " ")
	if err != nil {
		return err
	}
	return os.WriteFile(o.json, text, 0o644)
}

// run measures all systems in turn, round by round.
func (b *rig) run(sc scenario) (map[string][][]float64, error) {
	figures := map[string][][]float64{}
	rounds := b.o.rounds
	if sc.once {
		rounds = 0
		if err := b.restart(); err != nil {
			return nil, err
		}
	}
	for round := range rounds + 1 {
		for i := range b.systems {
			s := b.systems[(i+round)%len(b.systems)]
			values, err := sc.measure(b, s)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", s.name, err)
			}
			if round > 0 || sc.once { // the first round warms up
				figures[s.name] = append(figures[s.name], values)
			}
		}
	}
	return figures, nil
}
