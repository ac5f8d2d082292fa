package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
)

// report prints a run as tables.
func report(w io.Writer, o options, r *run) {
	fmt.Fprintf(w, "### %s: %s (%s", r.load.name, r.load.title, r.system.name)
	if r.scale < 1 {
		fmt.Fprintf(w, ", scale %g", r.scale)
	}
	fmt.Fprint(w, ")\n\n")
	for _, line := range r.done {
		fmt.Fprintf(w, "%s\n\n", line)
	}
	fmt.Fprint(w, "| phase | until | resident at its end | most in it | ledger | unaccounted |\n|---|---|---|---|---|---|\n")
	for _, p := range r.meter.phases {
		ledger, unaccounted := "–", "–"
		if p.is != nil {
			ledger = fmt.Sprintf("%.1f MiB", mib(p.is["rss/ledger"]))
			unaccounted = fmt.Sprintf("%.1f MiB (%.1f %%)", mib(p.unaccounted()), 100*float64(p.unaccounted())/float64(p.is["rss"]))
		}
		fmt.Fprintf(w, "| %s | %.0f s | %.1f MiB | %.1f MiB | %s | %s |\n", p.name, p.end.Seconds(), mib(p.rss), mib(p.most), ledger, unaccounted)
	}
	fmt.Fprintln(w)
	if o.limit > 0 {
		var most int64
		for _, p := range r.meter.phases {
			most = max(most, p.most)
		}
		reached := "reached"
		if most > o.limit+o.limit/4 {
			reached = "NOT reached"
		}
		fmt.Fprintf(w, "- most at any time with a limit of %.0f MiB: %.1f MiB (at most %.0f: %s)\n", mib(o.limit), mib(most), mib(o.limit+o.limit/4), reached)
	}
	for _, t := range r.load.targets {
		if o.limit > 0 && t.unit == "B" {
			continue // some were refused
		}
		p, ok := r.find(t.phase)
		if !ok {
			continue
		}
		value := t.value(r, p)
		fmt.Fprintf(w, "- %s: %.1f %s", t.what, value, t.unit)
		if r.system.name == "pgebb" && (r.scale == 1 || t.scaled) {
			reached := "reached"
			if value > t.most {
				reached = "NOT reached"
			}
			fmt.Fprintf(w, " (at most %g: %s)", t.most, reached)
		}
		fmt.Fprintln(w)
	}
	fmt.Fprintln(w)
	if o.verbose {
		accounts(w, r)
	}
}

// accounts prints the account of each phase, side by side.
func accounts(w io.Writer, r *run) {
	var names []string
	for _, p := range r.meter.phases {
		for name := range p.is {
			if !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	slices.Sort(names)
	for _, name := range names {
		fmt.Fprintf(w, "%-36s", strings.Repeat("  ", strings.Count(name, "/"))+name[strings.LastIndexByte(name, '/')+1:])
		for _, p := range r.meter.phases {
			fmt.Fprintf(w, " %12d", p.is[name])
		}
		fmt.Fprintln(w)
	}
	fmt.Fprintln(w)
}
