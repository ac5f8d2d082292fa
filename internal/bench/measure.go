package main

import (
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/pgebb/pgebb/frontend/frontendtest"
	"github.com/pgebb/pgebb/internal/wire"
)

// results has 4 clients read results of that many rows of that many bytes. They do not
// look at what they read but for its end, so that they cost little.
func (b *rig) results(s *system, rows, size int) (sample, error) {
	const clients = 4
	each := 2 * b.o.seconds
	crowd, err := b.connect(s, clients)
	defer closeAll(crowd)
	if err != nil {
		return nil, err
	}
	query := fmt.Sprintf("SELECT repeat('x', %d) FROM generate_series(1, %d)", size, rows)
	var total [clients]int
	cost, err := s.spending(func() error {
		return inParallel(clients, func(i int) error {
			for range each {
				n, err := readResult(crowd[i], query)
				if err == nil && n < rows*size {
					err = fmt.Errorf("a result has only %d bytes", n)
				}
				if err != nil {
					return err
				}
				total[i] += n
			}
			return nil
		})
	})
	if err != nil {
		return nil, err
	}
	var bytes int
	for _, n := range total {
		bytes += n
	}
	found := sample{"mb_per_s": float64(bytes) / 1e6 / cost.took.Seconds()}
	if cost.known {
		found["cpu_ms"] = float64(cost.cpu.Nanoseconds()) / 1e6 / float64(clients*each)
	}
	return found, nil
}

// readResult runs a query and reads until the ReadyForQuery that ends it.
func readResult(c *frontendtest.Client, query string) (int, error) {
	if err := c.Say(&pgproto3.Query{String: query}); err != nil {
		return 0, err
	}
	_ = c.SetReadDeadline(time.Now().Add(time.Minute))
	return readUntilReady(c)
}

// readUntilReady reads up to the bytes of a ReadyForQuery, which must not be in what
// comes before, and returns how many there were.
func readUntilReady(r io.Reader) (total int, err error) {
	end := string(wire.AppendReadyForQuery(nil, wire.Idle))
	buf := make([]byte, 256<<10)
	tail := ""
	for tail != end {
		n, err := r.Read(buf)
		total += n
		tail += string(buf[max(0, n-len(end)):n])
		tail = tail[max(0, len(tail)-len(end)):]
		if err != nil && tail != end {
			return total, fmt.Errorf("reading a result: %w", err)
		}
	}
	return total, nil
}

// idle connects clients, runs one query with each, and looks ten seconds later at what
// the pooler has grown by since a smaller crowd has left.
func (b *rig) idle(s *system) (sample, error) {
	if s.pid == 0 {
		return sample{}, nil
	}
	warm, err := b.crowd(s, 50)
	closeAll(warm)
	if err != nil {
		return nil, err
	}
	time.Sleep(b.o.wait)
	before, err := rss(s.pid)
	if err != nil {
		return nil, err
	}
	clients, err := b.crowd(s, b.o.clients)
	defer closeAll(clients)
	if err != nil {
		return nil, err
	}
	time.Sleep(b.o.wait)
	after, err := rss(s.pid)
	if err != nil {
		return nil, err
	}
	n := float64(len(clients))
	return sample{"rss_b": (after - before) / n, "clients": n, "before_mb": before / 1e6}, nil
}

// crowd connects clients while no other system gets any: what a pooler grows by depends
// on how fast they come.
func (b *rig) crowd(s *system, n int) ([]*frontendtest.Client, error) {
	b.crowding.Lock()
	defer b.crowding.Unlock()
	return b.connect(s, n)
}

// connect connects clients, 32 at a time, and runs one query with each. The clients are
// the caller's to close, also if there is an error.
func (b *rig) connect(s *system, n int) ([]*frontendtest.Client, error) {
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
func (b *rig) logins(s *system) (sample, error) {
	each := 10 * b.o.seconds
	cost, err := s.spending(func() error {
		return inParallel(32, func(int) error {
			for range each {
				if err := visit(b.login(s)); err != nil {
					return err
				}
			}
			return nil
		})
	})
	if err != nil {
		return nil, err
	}
	n := float64(32 * each)
	found := sample{"per_s": n / cost.took.Seconds()}
	if cost.known {
		found["cpu_us"] = float64(cost.cpu.Nanoseconds()) / 1e3 / n
	}
	return found, nil
}

// visit is a client that runs one query. It stays until the pooler has seen it leave.
func visit(l frontendtest.Login) error {
	c, err := frontendtest.Connect(l)
	if err != nil {
		return err
	}
	defer c.Close()
	if _, err := c.Query("SELECT 1"); err != nil {
		return err
	}
	if err := c.Say(&pgproto3.Terminate{}); err != nil {
		return err
	}
	_, _ = io.Copy(io.Discard, c) // it may be closed by a reset as well
	return nil
}

// inParallel runs f n times at once and returns all errors.
func inParallel(n int, f func(i int) error) error {
	errs := make([]error, n)
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() { errs[i] = f(i) })
	}
	wg.Wait()
	return errors.Join(errs...)
}
