package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
)

// report prints a scenario as a table.
func report(w io.Writer, r result) {
	fmt.Fprintf(w, "### %s; rounds: %d\n\n| |", r.title, len(r.samples[r.systems[0].name]))
	for _, s := range r.systems {
		fmt.Fprintf(w, " %s |", s.name)
	}
	fmt.Fprintf(w, " ratio | of medians | target | reached |\n|%s\n", strings.Repeat("---|", len(r.systems)+5))
	for _, m := range r.metrics {
		if len(r.column(r.systems[0].name, m.key)) == 0 {
			continue
		}
		fmt.Fprintf(w, "| %s |", m.name)
		for _, s := range r.systems {
			fmt.Fprintf(w, " %s |", spread(r.column(s.name, m.key), m.unit))
		}
		ratio, ofMedians := "–", "–"
		if c := r.compare(m.key); c != nil {
			ratio, ofMedians = fmt.Sprintf("%.2f×", c.Ratio), fmt.Sprintf("%.2f×", c.OfMedians)
			if c.Least != c.Most {
				ratio += fmt.Sprintf(" (%.2f–%.2f)", c.Least, c.Most)
			}
		}
		fmt.Fprintf(w, " %s | %s | %s | %s |\n", ratio, ofMedians, orDash(m.target()), orDash(r.reached(m)))
	}
	fmt.Fprintln(w)
}

func orDash(s string) string {
	if s == "" {
		return "–"
	}
	return s
}

// spread prints the median of figures, and their range.
func spread(x []float64, unit string) string {
	if len(x) == 0 {
		return "–"
	}
	if unit != "" {
		unit = " " + unit
	}
	if len(x) == 1 {
		return short(x[0]) + unit
	}
	return fmt.Sprintf("%s%s (%s–%s)", short(median(x)), unit, short(slices.Min(x)), short(slices.Max(x)))
}

// short is a figure with three digits or more.
func short(x float64) string {
	switch {
	case x >= 100 || x <= -100:
		return fmt.Sprintf("%.0f", x)
	case x >= 10 || x <= -10:
		return fmt.Sprintf("%.1f", x)
	}
	return fmt.Sprintf("%.2f", x)
}

// writeJSON writes all figures of all rounds.
func writeJSON(path string, found environment, o options, all []result) error {
	type summary struct {
		Name    string      `json:"name"`
		Unit    string      `json:"unit,omitempty"`
		Ratio   *comparison `json:"comparison,omitempty"`
		Target  string      `json:"target,omitempty"`
		Reached string      `json:"reached,omitempty"`
	}
	type scenarioFigures struct {
		Title   string              `json:"title"`
		Systems []string            `json:"systems"` // the first is compared with the second
		Metrics map[string]summary  `json:"metrics"`
		Rounds  map[string][]sample `json:"rounds"`
	}
	file := struct {
		Environment environment                `json:"environment"`
		Rounds      int                        `json:"rounds"`
		Seconds     int                        `json:"seconds"`
		Auth        string                     `json:"auth,omitempty"`
		Scenarios   map[string]scenarioFigures `json:"scenarios"`
	}{found, o.rounds, o.seconds, o.auth, map[string]scenarioFigures{}}
	for _, r := range all {
		figures := scenarioFigures{Title: r.title, Metrics: map[string]summary{}, Rounds: r.samples}
		for _, s := range r.systems {
			figures.Systems = append(figures.Systems, s.name)
		}
		for _, m := range r.metrics {
			figures.Metrics[m.key] = summary{m.name, m.unit, r.compare(m.key), m.target(), r.reached(m)}
		}
		file.Scenarios[r.name] = figures
	}
	text, err := json.MarshalIndent(file, "", " ")
	if err != nil {
		return fmt.Errorf("writing the figures: %w", err)
	}
	if err := os.WriteFile(path, append(text, '\n'), 0o644); err != nil {
		return fmt.Errorf("writing the figures: %w", err)
	}
	return nil
}
