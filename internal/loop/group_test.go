package loop

import "testing"

func TestALoopMoreIsUsedOnlyWhenThoseInUseAreSaturated(t *testing.T) {
	for name, c := range map[string]struct {
		cores []float64 // in each second
		want  int       // loops in use at the end, of one at the start
	}{
		"idle":                           {[]float64{0, 0, 0}, 1},
		"busy, but not saturated":        {[]float64{0.7, 0.7, 0.7, 0.7}, 1},
		"saturated for a moment":         {[]float64{0.9, 0.1, 0.9, 0.1}, 1},
		"saturated":                      {[]float64{0.9, 0.9}, 2},
		"both saturated":                 {[]float64{0.9, 0.9, 1.8, 1.8}, 3},
		"one would do again":             {[]float64{0.9, 0.9, 0.4, 0.4}, 1},
		"one would do, but only just":    {[]float64{0.9, 0.9, 0.8, 0.8, 0.8}, 2},
		"busy again before one is given": {[]float64{0.9, 0.9, 0.4, 1.2, 0.4, 1.2}, 2},
	} {
		used := 1
		var b balance
		for _, cores := range c.cores {
			used = b.judge(used, cores)
		}
		if used != c.want {
			t.Errorf("%s: %d loops are used, want %d", name, used, c.want)
		}
	}
}
