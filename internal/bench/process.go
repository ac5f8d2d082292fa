package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/pgebb/pgebb/internal/testpg"
)

// spent is what something has cost a pooler.
type spent struct {
	took     time.Duration
	known    bool          // the pooler's process is, and so are the following
	cpu      time.Duration // processor time of all its threads, also of those that have ended
	switches float64       // how often its threads have gone to sleep; those that have ended are not counted
}

// spending runs f and tells what it has cost the system's process.
func (s *system) spending(f func() error) (spent, error) {
	before, switches, err := s.used()
	if err != nil {
		return spent{}, err
	}
	started := time.Now()
	if err := f(); err != nil {
		return spent{}, err
	}
	took := time.Since(started)
	after, moreSwitches, err := s.used()
	if err != nil {
		return spent{}, err
	}
	return spent{took: took, known: s.pid != 0, cpu: after - before, switches: moreSwitches - switches}, nil
}

func (s *system) used() (time.Duration, float64, error) {
	if s.pid == 0 {
		return 0, 0, nil
	}
	cpu, err := testpg.CPUTime(s.pid)
	return cpu, voluntarySwitches(s.pid), err
}

// voluntarySwitches counts how often the threads of a process have gone to sleep.
func voluntarySwitches(pid int) float64 {
	tasks, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/status", pid)) // the pattern is good
	var sum float64
	for _, task := range tasks {
		text, _ := os.ReadFile(task) // the thread may have ended
		n, _ := field(string(text), "voluntary_ctxt_switches:")
		sum += n
	}
	return sum
}

// field finds a line's number in a file of /proc.
func field(text, name string) (float64, bool) {
	for line := range strings.Lines(text) {
		rest, found := strings.CutPrefix(line, name)
		if values := strings.Fields(rest); found && len(values) > 0 {
			n, err := strconv.ParseFloat(values[0], 64)
			return n, err == nil
		}
	}
	return 0, false
}

// rss is the resident set size of a process in bytes. It is taken from the page tables:
// the counter behind statm and status may be off by dozens of pages for each processor.
func rss(pid int) (float64, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", pid))
	if kb, found := field(string(text), "Rss:"); err == nil && found {
		return kb * 1024, nil
	}
	n, err := testpg.RSS(pid) // on kernels before 4.14
	return float64(n), err
}
