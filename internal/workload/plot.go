package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

const (
	plotWidth, plotHeight = 900, 400
	plotMargin            = 60
)

// writePlot draws resident bytes and ledger over time, with the ends of the phases, as
// an SVG.
func writePlot(dir string, r *run) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("writing a plot: %w", err)
	}
	path := filepath.Join(dir, r.load.name+"-"+strings.NewReplacer("/", "_", ":", "_").Replace(r.system.name)+".svg")
	if err := os.WriteFile(path, []byte(plot(r)), 0o644); err != nil {
		return fmt.Errorf("writing a plot: %w", err)
	}
	return nil
}

func plot(r *run) string {
	var most int64 = 1
	var last float64 = 1
	for _, s := range r.meter.samples {
		most = max(most, s.rss, s.ledger)
		last = max(last, s.at.Seconds())
	}
	x := func(seconds float64) float64 { return plotMargin + seconds/last*(plotWidth-2*plotMargin) }
	y := func(bytes int64) float64 {
		return plotHeight - plotMargin - float64(bytes)/float64(most)*(plotHeight-2*plotMargin)
	}
	var rss, ledger strings.Builder
	for _, s := range r.meter.samples {
		fmt.Fprintf(&rss, "%.1f,%.1f ", x(s.at.Seconds()), y(s.rss))
		if s.ledger >= 0 {
			fmt.Fprintf(&ledger, "%.1f,%.1f ", x(s.at.Seconds()), y(s.ledger))
		}
	}
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" font-family="sans-serif" font-size="12">`+"\n", plotWidth, plotHeight)
	fmt.Fprintf(&b, `<rect width="100%%" height="100%%" fill="white"/><text x="%d" y="24" font-size="14">%s: %s</text>`+"\n", plotMargin, r.system.name, r.load.title)
	for i := range 5 {
		bytes := most * int64(i) / 4
		fmt.Fprintf(&b, `<line x1="%d" x2="%d" y1="%.1f" y2="%.1f" stroke="#ddd"/><text x="%d" y="%.1f" text-anchor="end">%.0f MiB</text>`+"\n",
			plotMargin, plotWidth-plotMargin, y(bytes), y(bytes), plotMargin-4, y(bytes)+4, mib(bytes))
	}
	for _, p := range r.meter.phases {
		at := x(p.end.Seconds())
		fmt.Fprintf(&b, `<line x1="%.1f" x2="%.1f" y1="%d" y2="%d" stroke="#aaa" stroke-dasharray="4"/><text x="%.1f" y="%d" text-anchor="end">%s</text>`+"\n",
			at, at, plotMargin-10, plotHeight-plotMargin, at-2, plotMargin, p.name)
	}
	fmt.Fprintf(&b, `<text x="%d" y="%d" text-anchor="middle">%.0f s</text>`+"\n", plotWidth-plotMargin, plotHeight-plotMargin+16, last)
	fmt.Fprintf(&b, `<polyline fill="none" stroke="#1f77b4" stroke-width="1.5" points="%s"/><text x="%d" y="%d" fill="#1f77b4">resident</text>`+"\n", rss.String(), plotMargin, plotHeight-12)
	if ledger.Len() > 0 {
		fmt.Fprintf(&b, `<polyline fill="none" stroke="#d62728" stroke-width="1.5" points="%s"/><text x="%d" y="%d" fill="#d62728">ledger</text>`+"\n", ledger.String(), plotMargin+80, plotHeight-12)
	}
	b.WriteString("</svg>\n")
	return b.String()
}
