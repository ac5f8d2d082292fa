package main

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/pgebb/pgebb/frontend/frontendtest"
	"github.com/pgebb/pgebb/internal/testpg"
)

const (
	// sampleEvery is how often the resident pages are read, and askEvery how often the
	// console is asked. Asking costs the pooler something.
	sampleEvery = 50 * time.Millisecond
	askEvery    = time.Second
)

// sample is what was read at a moment.
type sample struct {
	at     time.Duration // since the start of the meter
	rss    int64
	ledger int64 // -1 if it is not known
}

// phase is what a part of a run has come to.
type phase struct {
	name string
	end  time.Duration
	most int64            // resident bytes at any time of the phase
	rss  int64            // at its end
	is   map[string]int64 // lines of SHOW MEMORY at its end, nil if there is no such console
}

// unaccounted is what of the resident pages pgebb does not explain.
func (p *phase) unaccounted() int64 { return p.is["rss/unaccounted"] }

// meter reads the memory of a pooler from its start until it is closed.
type meter struct {
	s     *system
	start time.Time
	stop  chan struct{}
	done  sync.WaitGroup

	mu      sync.Mutex
	samples []sample // guarded by mu
	phases  []phase  // guarded by mu
	most    int64    // of the phase at hand; guarded by mu
	console *frontendtest.Client
}

func newMeter(s *system) (*meter, error) {
	m := &meter{s: s, start: time.Now(), stop: make(chan struct{})}
	if s.admin.User != "" {
		var err error
		if m.console, err = frontendtest.Connect(s.admin); err != nil {
			return nil, fmt.Errorf("connecting to the console: %w", err)
		}
	}
	m.done.Go(m.watch)
	return m, nil
}

func (m *meter) close() {
	close(m.stop)
	m.done.Wait()
	if m.console != nil {
		m.console.Close()
	}
}

// watch runs until the meter is closed.
func (m *meter) watch() {
	ticker := time.NewTicker(sampleEvery)
	defer ticker.Stop()
	asked := time.Time{}
	for {
		select {
		case <-m.stop:
			return
		case now := <-ticker.C:
			rss, err := testpg.RSS(m.s.pid)
			if err != nil {
				return // the process has ended, which others notice
			}
			m.mu.Lock()
			x := sample{now.Sub(m.start), rss, -1}
			if m.console != nil && now.Sub(asked) >= askEvery {
				asked = now
				if lines, err := m.ask(); err == nil {
					x.ledger = lines["rss/ledger"]
				}
			}
			m.samples = append(m.samples, x)
			m.most = max(m.most, rss)
			m.mu.Unlock()
		}
	}
}

// ask reads SHOW MEMORY; mu must be held.
func (m *meter) ask() (map[string]int64, error) {
	rows, err := m.console.Table("SHOW MEMORY")
	if err != nil {
		return nil, fmt.Errorf("asking the console: %w", err)
	}
	lines := map[string]int64{}
	for _, row := range rows {
		n, err := strconv.ParseInt(row["bytes"], 10, 64)
		if err != nil {
			return nil, fmt.Errorf("SHOW MEMORY says %q for %s", row["bytes"], row["name"])
		}
		lines[row["name"]] = n
	}
	return lines, nil
}

// phase ends a part of the run and gives it a name.
func (m *meter) phase(name string) (phase, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	rss, err := exactRSS(m.s.pid)
	if err != nil {
		return phase{}, err
	}
	p := phase{name: name, end: time.Since(m.start), rss: rss, most: max(m.most, rss)}
	if m.console != nil {
		if p.is, err = m.ask(); err != nil {
			return phase{}, err
		}
	}
	m.most = 0
	m.phases = append(m.phases, p)
	return p, nil
}

// exactRSS is the resident set size of a process in bytes, from the page tables: the
// counter behind statm may be off by dozens of pages for each processor.
func exactRSS(pid int) (int64, error) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", pid))
	if err != nil {
		return testpg.RSS(pid)
	}
	for line := range strings.Lines(string(b)) {
		if rest, ok := strings.CutPrefix(line, "Rss:"); ok {
			kb, err := strconv.ParseInt(strings.Fields(rest)[0], 10, 64)
			return kb << 10, err
		}
	}
	return testpg.RSS(pid)
}
