//go:build !race

// With the race detector a program takes several times the memory.

package main

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pgebb/pgebb/frontend/frontendtest"
	"github.com/pgebb/pgebb/internal/testpg"
	"github.com/pgebb/pgebb/internal/wire"
)

func TestMain(m *testing.M) { testpg.Main(m) }

// hasty gives memory back as soon as it may.
const hasty = "[memory]\ntrim_interval = 100\n"

// small is a run of a load at a small scale before a pgebb that is built from here.
func small(t *testing.T, name string, scale float64, limit int64) *run {
	t.Helper()
	pg := testpg.ForTest(t)
	for _, l := range loads {
		if l.name != name {
			continue
		}
		o := pgebbOptions(options{binary: testpg.Binary(t), parser: "off"}, pg, l)
		o.Config += hasty
		if limit > 0 {
			o.Config += fmt.Sprintf("limit = %d\n", limit)
		}
		r := &run{load: l, system: systemOf(testpg.Pgebb(t, o), pg), scale: scale, quick: 0.001}
		var err error
		if r.meter, err = newMeter(r.system); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(r.meter.close)
		if _, err := exactRSS(r.system.pid); err != nil {
			t.Fatal(err)
		}
		pause(3 * askEvery) // in which the start is trimmed
		if err := r.phase("baseline"); err != nil {
			t.Fatal(err)
		}
		r.quick = 6
		if err := l.do(r); err != nil {
			t.Fatal(err)
		}
		return r
	}
	t.Fatalf("there is no load %s", name)
	return nil
}

// explained checks that in each phase hardly anything is unaccounted for.
func explained(t *testing.T, r *run) {
	t.Helper()
	for _, p := range r.meter.phases {
		most := max(p.is["rss"]/20, 4<<20)
		if u := p.unaccounted(); u > most || -u > most {
			t.Errorf("%s: of %.1f MiB %.1f are not accounted for", p.name, mib(p.is["rss"]), mib(u))
		}
	}
}

// TestMemoryComesBack has small loads, whose memory must be explained at any time and
// come back.
func TestMemoryComesBack(t *testing.T) {
	for name, c := range map[string]struct {
		scale float64
		grows float64 // MiB that it grows by, at least
		after string  // phase in which it must be back
	}{
		"connections":        {0.1, 0, "left"},
		"large-queries":      {0.1, 0, "after"},
		"slow-readers":       {0.02, 0, "after"},
		"million-statements": {0.05, 15, "left"},
	} {
		t.Run(name, func(t *testing.T) {
			r := small(t, name, c.scale, 0)
			explained(t, r)
			back, ok := r.find(c.after)
			if !ok {
				t.Fatalf("there is no phase %s", c.after)
			}
			if over := overBaseline(r, back); over > 8 {
				t.Errorf("%.1f MiB are not given back", over)
			}
			var most int64
			for _, p := range r.meter.phases {
				most = max(most, p.most)
			}
			if grown := mib(most - r.baseline()); grown < c.grows || grown > c.grows*3+16 {
				t.Errorf("it has grown by %.1f MiB", grown)
			}
		})
	}
}

// TestALimitIsKept has more statements than there is room for.
func TestALimitIsKept(t *testing.T) {
	const limit = 40 << 20
	r := small(t, "million-statements", 0.1, limit)
	explained(t, r)
	for _, p := range r.meter.phases {
		if p.most > limit+limit/4 {
			t.Errorf("%s: %.1f MiB with a limit of %d MiB", p.name, mib(p.most), limit>>20)
		}
	}
	if !strings.Contains(strings.Join(r.done, ""), "had some refused") || strings.Contains(strings.Join(r.done, ""), " 0 of the batches") {
		t.Errorf("nothing was refused: %s", r.done)
	}
}

// TestRequestsLeaveNothing has many requests, and does the same with a program in which each
// leaves 512 bytes, which must be noticed.
func TestRequestsLeaveNothing(t *testing.T) {
	const requests, each = 20_000, 512
	if left := leftBy(t, testpg.Binary(t), requests); left > requests*each/4 {
		t.Errorf("%d requests have left %d bytes", requests, left)
	}
	leaky := filepath.Join(t.TempDir(), "pgebb")
	cmd := exec.Command("go", "build", "-buildvcs=false", "-tags", "pgebb_leak", "-o", leaky, "./cmd/pgebb")
	cmd.Dir = testpg.Root()
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("building a pgebb that leaks: %v\n%s", err, out)
	}
	if left := leftBy(t, leaky, requests); left < requests*each*3/4 {
		t.Errorf("%d requests that leave %d bytes each are said to have left %d", requests, each, left)
	}
}

// leftBy is how many bytes that nobody accounts for requests have left in a pgebb.
func leftBy(t *testing.T, binary string, requests int) int64 {
	t.Helper()
	pg := testpg.ForTest(t)
	o := pgebbOptions(options{binary: binary, parser: "off"}, pg, load{pool: 2})
	o.Config += hasty
	s := systemOf(testpg.Pgebb(t, o), pg)
	m, err := newMeter(s)
	if err != nil {
		t.Fatal(err)
	}
	defer m.close()
	c, err := frontendtest.Connect(s.login)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	ask := func(n int) int64 {
		t.Helper()
		query := wire.AppendQuery(nil, "SELECT 1")
		for range n {
			if code, err := exchange(c, query); err != nil || code != "" {
				t.Fatalf("SQLSTATE %q, %v", code, err)
			}
		}
		return settledUnaccounted(t, m)
	}
	before := ask(requests / 10)
	return ask(requests) - before
}

// settledUnaccounted is what nothing explains once that does not change any more: what has
// been live at a collection is known at the next one.
func settledUnaccounted(t *testing.T, m *meter) int64 {
	t.Helper()
	last := int64(-1)
	for range 20 {
		pause(3 * askEvery)
		p, err := m.phase("")
		if err != nil {
			t.Fatal(err)
		}
		u := p.unaccounted()
		if last >= 0 && max(u, last)-min(u, last) < 256<<10 {
			return u
		}
		last = u
	}
	t.Fatal("it does not settle")
	return 0
}

func TestThePlotHasWhatWasMeasured(t *testing.T) {
	r := &run{load: load{title: "some load"}, system: &system{name: "some pooler"}, meter: &meter{
		samples: []sample{{0, 10 << 20, -1}, {1e9, 20 << 20, 5 << 20}, {2e9, 10 << 20, 1 << 20}},
		phases:  []phase{{name: "baseline"}, {name: "load", end: 1e9}},
	}}
	got := plot(r)
	for _, want := range []string{"some load", "some pooler", "baseline", "20 MiB", "ledger", "<polyline"} {
		if !strings.Contains(got, want) {
			t.Errorf("the plot lacks %q", want)
		}
	}
}
