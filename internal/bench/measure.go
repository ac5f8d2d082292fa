package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/pgebb/pgebb/frontend/frontendtest"
	"github.com/pgebb/pgebb/internal/testpg"
	"github.com/pgebb/pgebb/internal/wire"
)

var (
	processed = regexp.MustCompile(`number of transactions actually processed: (\d+)`)
	perSecond = regexp.MustCompile(`tps = ([0-9.]+)`)
)

// pgbench runs SELECT 1 with 16 clients.
func (b *rig) pgbench(s *system, protocol string) ([]float64, error) {
	cpu, err := testpg.CPUTime(s.pid)
	if err != nil {
		return nil, err
	}
	switches := voluntarySwitches(s.pid)
	cmd := exec.Command(b.bencher, "-n", "-h", "127.0.0.1", "-p", strconv.Itoa(s.port), "-U", b.pg.User,
		"-c", "16", "-j", "2", "-T", strconv.Itoa(b.o.seconds), "-M", protocol, "-f", b.script, "postgres")
	cmd.Env = append(os.Environ(), "PGPASSWORD="+b.pg.Password, "PGSSLMODE=disable")
	out, err := cmd.CombinedOutput()
	if err != nil {
		return nil, fmt.Errorf("pgbench: %w\n%s", err, out)
	}
	after, err := testpg.CPUTime(s.pid)
	if err != nil {
		return nil, err
	}
	n, tps := processed.FindSubmatch(out), perSecond.FindSubmatch(out)
	if n == nil || tps == nil {
		return nil, fmt.Errorf("pgbench says\n%s", out)
	}
	transactions, err1 := strconv.ParseFloat(string(n[1]), 64)
	rate, err2 := strconv.ParseFloat(string(tps[1]), 64)
	if err := errors.Join(err1, err2); err != nil {
		return nil, err
	}
	return []float64{float64((after - cpu).Nanoseconds()) / 1e3 / transactions, rate, (voluntarySwitches(s.pid) - switches) / transactions}, nil
}

// voluntarySwitches counts how often the threads of a process have gone to sleep.
func voluntarySwitches(pid int) float64 {
	tasks, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/status", pid)) // the pattern is good
	var sum float64
	for _, task := range tasks {
		text, _ := os.ReadFile(task) // the thread may have ended
		for line := range strings.Lines(string(text)) {
			if rest, ok := strings.CutPrefix(line, "voluntary_ctxt_switches:"); ok {
				n, _ := strconv.ParseFloat(strings.TrimSpace(rest), 64)
				sum += n
			}
		}
	}
	return sum
}

const (
	resultRows  = 10_000
	resultQuery = "SELECT repeat('x', 1000) FROM generate_series(1, 10000)"
)

// results has 4 clients read results of 10 MB. They do not look at what they read but
// for its end, so that they cost little.
func (b *rig) results(s *system) ([]float64, error) {
	const clients, each = 4, 6
	cpu, err := testpg.CPUTime(s.pid)
	if err != nil {
		return nil, err
	}
	started := time.Now()
	var total int64
	var mu sync.Mutex
	err = inParallel(clients, func(int) error {
		c, err := frontendtest.Connect(b.login(s))
		if err != nil {
			return err
		}
		defer c.Close()
		for range each {
			n, err := readResult(c)
			if err != nil {
				return err
			}
			mu.Lock()
			total += n
			mu.Unlock()
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	took := time.Since(started).Seconds()
	after, err := testpg.CPUTime(s.pid)
	if err != nil {
		return nil, err
	}
	if total < clients*each*resultRows*1000 {
		return nil, fmt.Errorf("only %d bytes came back", total)
	}
	return []float64{float64((after - cpu).Nanoseconds()) / 1e6 / (clients * each), float64(total) / 1e6 / took}, nil
}

// readResult runs the query and reads until the ReadyForQuery that ends it.
func readResult(c *frontendtest.Client) (int64, error) {
	if err := c.Say(&pgproto3.Query{String: resultQuery}); err != nil {
		return 0, err
	}
	_ = c.SetReadDeadline(time.Now().Add(time.Minute))
	end := string(wire.AppendReadyForQuery(nil, wire.Idle))
	buf := make([]byte, 256<<10)
	var total int64
	tail := ""
	for {
		n, err := c.Read(buf)
		if err != nil {
			return total, err
		}
		total += int64(n)
		tail = (tail + string(buf[max(0, n-len(end)):n]))
		tail = tail[max(0, len(tail)-len(end)):]
		if tail == end {
			return total, nil
		}
	}
}

// idle connects clients, 32 at a time, runs one query with each, and looks ten seconds
// later at what the pooler has grown by since a smaller crowd has left.
func (b *rig) idle(s *system) ([]float64, error) {
	warm, err := b.crowd(s, 50)
	if err != nil {
		return nil, err
	}
	closeAll(warm)
	time.Sleep(10 * time.Second)
	before, err := testpg.RSS(s.pid)
	if err != nil {
		return nil, err
	}
	clients, err := b.crowd(s, b.o.clients)
	if err != nil {
		return nil, err
	}
	defer closeAll(clients)
	time.Sleep(10 * time.Second)
	after, err := testpg.RSS(s.pid)
	if err != nil {
		return nil, err
	}
	return []float64{float64(after-before) / float64(len(clients))}, nil
}

func (b *rig) crowd(s *system, n int) ([]*frontendtest.Client, error) {
	clients := make([]*frontendtest.Client, n)
	next := make(chan int, n)
	for i := range n {
		next <- i
	}
	close(next)
	err := inParallel(32, func(int) error {
		for i := range next {
			c, err := frontendtest.Connect(b.login(s))
			if err != nil {
				return err
			}
			clients[i] = c
			if _, err := c.Query("SELECT 1"); err != nil {
				return err
			}
		}
		return nil
	})
	return clients, err
}

func closeAll(clients []*frontendtest.Client) {
	for _, c := range clients {
		if c != nil {
			c.Close()
		}
	}
}

// logins logs in, runs a query and leaves, 32 at a time.
func (b *rig) logins(s *system) ([]float64, error) {
	const each = 40
	cpu, err := testpg.CPUTime(s.pid)
	if err != nil {
		return nil, err
	}
	started := time.Now()
	err = inParallel(32, func(int) error {
		for range each {
			c, err := frontendtest.Connect(b.login(s))
			if err != nil {
				return err
			}
			if _, err := c.Query("SELECT 1"); err != nil {
				return err
			}
			if err := c.Say(&pgproto3.Terminate{}); err != nil {
				return err
			}
			_, _ = io.Copy(io.Discard, c) // until the pooler closes it
			c.Close()
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	took := time.Since(started)
	after, err := testpg.CPUTime(s.pid)
	if err != nil {
		return nil, err
	}
	n := 32.0 * each
	return []float64{n / took.Seconds(), float64((after - cpu).Nanoseconds()) / 1e3 / n}, nil
}

// inParallel runs f n times at once and returns the first error.
func inParallel(n int, f func(i int) error) error {
	errs := make([]error, n)
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() { errs[i] = f(i) })
	}
	wg.Wait()
	return errors.Join(errs...)
}
