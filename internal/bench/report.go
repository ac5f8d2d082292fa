package main

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"time"
)

// report prints a scenario as a table.
func report(w io.Writer, sc scenario, systems []*system, figures map[string][][]float64) {
	fmt.Fprintf(w, "\n### %s\n\n| |", sc.title)
	for _, s := range systems {
		fmt.Fprintf(w, " %s |", s.name)
	}
	fmt.Fprint(w, " ratio | target | reached |\n|---|")
	fmt.Fprintln(w, strings.Repeat("---|", len(systems)+3))
	for i, m := range sc.metrics {
		fmt.Fprintf(w, "| %s |", m.name)
		for _, s := range systems {
			fmt.Fprintf(w, " %s |", spread(column(figures[s.name], i), m.unit))
		}
		ratio := ratioOf(systems, figures, i)
		text := "–"
		if ratio > 0 {
			text = fmt.Sprintf("%.2f×", ratio)
		}
		fmt.Fprintf(w, " %s | %s | %s |\n", text, orDash(m.target), reached(m, ratio, median(column(figures["pgebb"], i))))
	}
}

func orDash(s string) string {
	if s == "" {
		return "–"
	}
	return s
}

// reached says whether a target is.
func reached(m metric, ratio, value float64) string {
	var ok bool
	switch {
	case m.ratio > 0 && ratio > 0 && m.more:
		ok = round2(ratio) >= m.ratio
	case m.ratio > 0 && ratio > 0:
		ok = round2(ratio) <= m.ratio
	case m.value > 0:
		ok = value <= m.value
	default:
		return "–"
	}
	if ok {
		return "yes"
	}
	return "no"
}

// round2 is a ratio as it is printed.
func round2(x float64) float64 { return float64(int(x*100+0.5)) / 100 }

func column(rows [][]float64, i int) []float64 {
	var out []float64
	for _, r := range rows {
		out = append(out, r[i])
	}
	return out
}

// ratioOf is the median over the rounds of pgebb's figure in PgBouncer's of the same
// round, so that what slows the machine for a while slows both.
func ratioOf(systems []*system, figures map[string][][]float64, i int) float64 {
	if len(systems) < 2 {
		return 0
	}
	ours, theirs := column(figures["pgebb"], i), column(figures["pgbouncer"], i)
	var ratios []float64
	for n := range min(len(ours), len(theirs)) {
		if theirs[n] > 0 {
			ratios = append(ratios, ours[n]/theirs[n])
		}
	}
	return median(ratios)
}

func median(x []float64) float64 {
	if len(x) == 0 {
		return 0
	}
	x = slices.Sorted(slices.Values(x))
	if n := len(x); n%2 == 0 {
		return (x[n/2-1] + x[n/2]) / 2
	}
	return x[len(x)/2]
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
		return number(x[0]) + unit
	}
	return fmt.Sprintf("%s%s (%s–%s)", number(median(x)), unit, number(slices.Min(x)), number(slices.Max(x)))
}

func number(x float64) string {
	switch {
	case x >= 1000:
		return fmt.Sprintf("%.0f", x)
	case x >= 10:
		return fmt.Sprintf("%.1f", x)
	}
	return fmt.Sprintf("%.2f", x)
}

// machine prints where the figures were taken.
func machine(b *rig) {
	hugePages, _ := os.ReadFile("/sys/kernel/mm/transparent_hugepage/enabled") // not everywhere
	fmt.Printf("Measured on %s: %d cores, Linux %s, transparent huge pages %s; %s; %s", time.Now().UTC().Format("2006-01-02 15:04 MST"), runtime.NumCPU(),
		output("uname", "-r"), strings.TrimSpace(string(hugePages)), runtime.Version(), output(b.postgres, "--version"))
	if b.bouncer == "" {
		fmt.Print("; no pgbouncer is on the PATH, so there is nothing to compare with")
	} else {
		fmt.Printf("; %s", strings.SplitN(output(b.bouncer, "--version"), "\n", 2)[0])
	}
	fmt.Printf(". Medians of %d rounds, with their range; the ratio is the median of the rounds' ratios.\n", b.o.rounds)
}

func output(name string, args ...string) string {
	out, err := exec.Command(name, args...).Output()
	if err != nil {
		return name + " (version not known)"
	}
	return strings.TrimSpace(string(out))
}
