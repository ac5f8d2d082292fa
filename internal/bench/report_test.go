package main

import (
	"io"
	"math"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/pgebb/pgebb/internal/wire"
)

func samples(key string, x ...float64) []sample {
	var all []sample
	for _, x := range x {
		all = append(all, sample{key: x})
	}
	return all
}

// compared is a result with one metric.
func compared(m metric, ours, theirs []float64) result {
	m.key = "x"
	r := result{
		scenario: scenario{title: "Load", metrics: []metric{m}},
		systems:  []*system{{name: "pgebb"}, {name: "pgbouncer"}, {name: "postgres", direct: true}},
		samples:  map[string][]sample{"pgebb": samples("x", ours...), "pgbouncer": samples("x", theirs...), "postgres": samples("y", 1)},
	}
	if theirs == nil {
		r.systems = slices.Delete(r.systems, 1, 2)
	}
	return r
}

func TestMedian(t *testing.T) {
	for _, test := range []struct {
		x    []float64
		want float64
	}{
		{[]float64{3}, 3},
		{[]float64{4, 1}, 2.5},
		{[]float64{9, 1, 2}, 2},
		{[]float64{9, 1, 2, 4}, 3},
	} {
		before := slices.Clone(test.x)
		if got := median(test.x); got != test.want {
			t.Errorf("median of %v is %v, want %v", test.x, got, test.want)
		}
		if !slices.Equal(test.x, before) {
			t.Errorf("the order of %v has been changed: a round is not with its like any more", before)
		}
	}
}

func TestRoundsAreComparedWithTheirLike(t *testing.T) {
	// The machine has been slow in the last round, for both.
	c := compared(metric{}, []float64{10, 9, 40}, []float64{10, 10, 50}).compare("x")
	if c == nil {
		t.Fatal("nothing is compared")
	}
	for what, pair := range map[string][2]float64{"ratio": {c.Ratio, 0.9}, "least": {c.Least, 0.8}, "most": {c.Most, 1}, "of medians": {c.OfMedians, 1}} {
		if math.Abs(pair[0]-pair[1]) > 1e-9 {
			t.Errorf("%s: %v, want %v", what, pair[0], pair[1])
		}
	}
}

func TestWhatCannotBeComparedIsNot(t *testing.T) {
	for what, r := range map[string]result{
		"no second pooler":   compared(metric{}, []float64{1, 2}, nil),
		"figures of nothing": compared(metric{}, []float64{1}, []float64{0}),
		"a round is missing": compared(metric{}, []float64{1, 2}, []float64{1}),
		"no figures":         compared(metric{}, []float64{}, []float64{}),
	} {
		if c := r.compare("x"); c != nil {
			t.Errorf("%s: %+v", what, c)
		}
	}
}

func TestTargets(t *testing.T) {
	atMost, atLeast, bound := metric{ratio: 0.6}, metric{ratio: 1, more: true}, metric{value: 700, unit: "B"}
	tests := []struct {
		name         string
		m            metric
		ours, theirs float64
		want         string
	}{
		{"below a greatest ratio", atMost, 5, 10, "yes"},
		{"at it", atMost, 6, 10, "yes"},
		{"printed as it", atMost, 6.04, 10, "yes"},
		{"above it", atMost, 6.1, 10, "no"},
		{"above a least ratio", atLeast, 11, 10, "yes"},
		{"at it", atLeast, 10, 10, "yes"},
		{"below it", atLeast, 9.9, 10, "no"},
		{"below a bound", bound, 400, 10, "yes"},
		{"at a bound", bound, 700, 10, "yes"},
		{"above a bound", bound, 701, 10, "no"},
		{"no target", metric{}, 1, 10, ""},
	}
	for _, test := range tests {
		if got := compared(test.m, []float64{test.ours}, []float64{test.theirs}).reached(test.m.withKey("x")); got != test.want {
			t.Errorf("%s: reached %q, want %q", test.name, got, test.want)
		}
	}
	if got := compared(atMost, []float64{1}, nil).reached(atMost.withKey("x")); got != "" {
		t.Errorf("a ratio to nothing is reached %q", got)
	}
	if got := compared(bound, []float64{1}, nil).reached(bound.withKey("x")); got != "yes" {
		t.Errorf("a bound without a second pooler is reached %q", got)
	}
}

func (m metric) withKey(key string) metric { m.key = key; return m }

func TestTables(t *testing.T) {
	m := metric{name: "CPU", unit: "µs", ratio: 1}
	tests := []struct {
		name string
		r    result
		want string
	}{
		{"two poolers", compared(m, []float64{10, 12, 11}, []float64{20, 20, 10}), `### Load; rounds: 3

| | pgebb | pgbouncer | postgres | ratio | of medians | target | reached |
|---|---|---|---|---|---|---|---|
| CPU | 11.0 µs (10.0–12.0) | 20.0 µs (10.0–20.0) | – | 0.60× (0.50–1.10) | 0.55× | ≤ 1.00× | yes |
`},
		{"one", compared(m, []float64{1234.5}, nil), `### Load; rounds: 1

| | pgebb | postgres | ratio | of medians | target | reached |
|---|---|---|---|---|---|---|
| CPU | 1234 µs | – | – | – | ≤ 1.00× | – |
`},
		{"no figure of the first", compared(m, nil, []float64{1}), `### Load; rounds: 0

| | pgebb | pgbouncer | postgres | ratio | of medians | target | reached |
|---|---|---|---|---|---|---|---|
`},
	}
	for _, test := range tests {
		var out strings.Builder
		report(&out, test.r)
		if out.String() != test.want+"\n" {
			t.Errorf("%s:\n%s\nwant\n%s", test.name, &out, test.want)
		}
	}
}

func TestPgbenchIsUnderstood(t *testing.T) {
	const out = "transaction type: -\nnumber of transactions actually processed: 128450\nnumber of failed transactions: 0 (0.000%)\nlatency average = 0.373 ms\ntps = 42816.7 (without initial connection time)\n"
	n, found, err := parsePgbench(out)
	if err != nil || n != 128450 || found["tps"] != 42816.7 {
		t.Errorf("%v transactions, %v, %v", n, found, err)
	}
	for what, out := range map[string]string{
		"nothing":        "",
		"no rate":        "number of transactions actually processed: 5\n",
		"no transaction": "number of transactions actually processed: 0\ntps = 0.0 (without initial connection time)\n",
	} {
		if _, _, err := parsePgbench(out); err == nil {
			t.Errorf("%s: no error", what)
		}
	}
}

func TestTheEndOfAResultIsFoundInPieces(t *testing.T) {
	result := wire.AppendReadyForQuery([]byte("rows that have Z\x00\x00\x00\x05E in them"), wire.Idle)
	for size := 1; size <= len(result); size++ {
		if n, err := readUntilReady(&pieces{left: result, size: size}); err != nil || n != len(result) {
			t.Errorf("in pieces of %d: %d bytes, %v; want %d", size, n, err, len(result))
		}
	}
	for size := range result {
		if _, err := readUntilReady(iotest.OneByteReader(strings.NewReader(string(result[:size])))); err == nil {
			t.Errorf("a result of which only %d bytes came has ended well", size)
		}
	}
}

// pieces gives what is left in pieces.
type pieces struct {
	left []byte
	size int
}

func (p *pieces) Read(b []byte) (int, error) {
	if len(p.left) == 0 {
		return 0, io.EOF
	}
	n := copy(b, p.left[:min(p.size, len(p.left))])
	p.left = p.left[n:]
	return n, nil
}

func TestAFigureOfProcIsFound(t *testing.T) {
	const text = "Name:\tpgebb\nvoluntary_ctxt_switches:\t150\nnonvoluntary_ctxt_switches:\t3\nRss:              1234 kB\nEmpty:\n"
	for name, want := range map[string]float64{"voluntary_ctxt_switches:": 150, "Rss:": 1234} {
		if got, ok := field(text, name); !ok || got != want {
			t.Errorf("%s is %v, %v; want %v", name, got, ok, want)
		}
	}
	for _, name := range []string{"Pss:", "Name:", "Empty:"} {
		if got, ok := field(text, name); ok {
			t.Errorf("%s is %v", name, got)
		}
	}
}
