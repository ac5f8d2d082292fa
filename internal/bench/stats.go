package main

import "slices"

// column is a figure of all rounds of a system; empty if the system does not have it.
func (r result) column(system, key string) []float64 {
	var all []float64
	for _, found := range r.samples[system] {
		if x, ok := found[key]; ok {
			all = append(all, x)
		}
	}
	return all
}

// comparison is one figure of the first system in that of the second.
type comparison struct {
	Ratio     float64 `json:"median_of_ratios"` // of the rounds, so that what slows the machine for a while slows both
	Least     float64 `json:"least_ratio"`
	Most      float64 `json:"most_ratio"`
	OfMedians float64 `json:"ratio_of_medians"`
}

// compare compares the first two systems; nil if there are not two poolers or one does
// not have the figure in every round.
func (r result) compare(key string) *comparison {
	if len(r.systems) < 2 || r.systems[1].direct {
		return nil
	}
	ours, theirs := r.column(r.systems[0].name, key), r.column(r.systems[1].name, key)
	if len(ours) == 0 || len(ours) != len(theirs) || slices.Min(theirs) <= 0 {
		return nil
	}
	ratios := make([]float64, len(ours))
	for i := range ours {
		ratios[i] = ours[i] / theirs[i]
	}
	return &comparison{
		Ratio: median(ratios), Least: slices.Min(ratios), Most: slices.Max(ratios),
		OfMedians: median(ours) / median(theirs),
	}
}

// median of at least one figure.
func median(x []float64) float64 {
	x = slices.Sorted(slices.Values(x))
	n := len(x)
	return (x[(n-1)/2] + x[n/2]) / 2
}

// reached says whether the first system reaches a target: "yes", "no", or nothing if
// there is no target or not what it takes. A ratio is taken as it is printed.
func (r result) reached(m metric) string {
	figures, c := r.column(r.systems[0].name, m.key), r.compare(m.key)
	var ok bool
	switch {
	case m.ratio > 0 && c != nil && m.more:
		ok = hundredths(c.Ratio) >= hundredths(m.ratio)
	case m.ratio > 0 && c != nil:
		ok = hundredths(c.Ratio) <= hundredths(m.ratio)
	case m.value > 0 && len(figures) > 0:
		ok = median(figures) <= m.value
	default:
		return ""
	}
	if ok {
		return "yes"
	}
	return "no"
}

func hundredths(x float64) int { return int(x*100 + 0.5) }
