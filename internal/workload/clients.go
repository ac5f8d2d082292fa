package main

import (
	"bufio"
	"fmt"
	"io"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/pgebb/pgebb/frontend/frontendtest"
	"github.com/pgebb/pgebb/internal/wire"
)

// comeAndGo has many clients that do hardly anything.
func comeAndGo(r *run) error {
	var mu sync.Mutex
	var clients []*frontendtest.Client
	defer func() {
		for _, c := range clients {
			c.Close()
		}
	}()
	n := r.scaled(5000)
	const atOnce = 50
	err := each(atOnce, func(i int) error {
		for k := i; k < n; k += atOnce {
			c, err := frontendtest.Connect(r.system.login)
			if err != nil {
				return err
			}
			mu.Lock()
			clients = append(clients, c)
			mu.Unlock()
			if _, err := c.Query("SELECT 1"); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	if err := r.phase("came"); err != nil {
		return err
	}
	if err := r.settle("held"); err != nil {
		return err
	}
	for _, c := range clients {
		c.Close()
	}
	clients = nil
	return r.settle("left")
}

// largeQueries has each of many clients send a query that is much larger than its answer,
// again and again.
func largeQueries(r *run) error {
	sql := "SELECT octet_length('" + strings.Repeat("a", 3_000_000) + "')"
	message, err := (&pgproto3.Query{String: sql}).Encode(nil)
	if err != nil {
		return fmt.Errorf("making a query: %w", err)
	}
	var queries, refused atomic.Int64
	rounds := r.scaled(4)
	err = each(r.scaled(500), func(int) error {
		c, err := frontendtest.Connect(r.system.login)
		if err != nil {
			return err
		}
		defer c.Close()
		for range rounds {
			told, err := exchange(c, message)
			if err != nil {
				return err
			}
			queries.Add(1)
			if told != "" {
				refused.Add(1)
			}
		}
		return nil
	})
	r.done = append(r.done, fmt.Sprintf("%d queries, %d of them refused", queries.Load(), refused.Load()))
	if err != nil {
		return err
	}
	if err := r.phase("load"); err != nil {
		return err
	}
	return r.settle("after")
}

// exchange sends a message and reads up to its ReadyForQuery. It returns the SQLSTATE of
// an error that it is told, if any.
func exchange(c *frontendtest.Client, message []byte) (code string, err error) {
	_ = c.SetDeadline(time.Now().Add(20 * time.Minute))
	if _, err := c.Write(message); err != nil {
		return "", fmt.Errorf("sending: %w", err)
	}
	_, code, err = drain(c, 1)
	return code, err
}

// drain reads up to so many ReadyForQuery and forgets what it reads; it returns how many
// bytes that were, and the last SQLSTATE of an error.
func drain(from io.Reader, ready int) (bytes int64, code string, err error) {
	in := bufio.NewReaderSize(from, 16<<10)
	var header [wire.HeaderSize]byte
	for {
		if _, err := io.ReadFull(in, header[:]); err != nil {
			return bytes, code, fmt.Errorf("waiting for an answer: %w", err)
		}
		typ, size := wire.Header(header[:])
		left := size - wire.HeaderSize
		if typ == wire.ErrorResponse {
			body := make([]byte, left)
			if _, err := io.ReadFull(in, body); err != nil {
				return bytes, code, fmt.Errorf("reading an error: %w", err)
			}
			code = string(wire.ErrorField(body, 'C'))
			left = 0
		}
		if _, err := in.Discard(left); err != nil {
			return bytes, code, fmt.Errorf("reading an answer: %w", err)
		}
		bytes += int64(size)
		if typ == wire.ReadyForQuery {
			if ready--; ready == 0 {
				return bytes, code, nil
			}
		}
	}
}

// slowReaders has clients that take their results a little at a time.
func slowReaders(r *run) error {
	rows := r.scaled(50_000)
	message, err := (&pgproto3.Query{String: fmt.Sprintf("SELECT repeat('x', 1000) FROM generate_series(1, %d)", rows)}).Encode(nil)
	if err != nil {
		return fmt.Errorf("making a query: %w", err)
	}
	var total atomic.Int64
	err = each(50, func(int) error {
		c, err := frontendtest.Connect(r.system.login)
		if err != nil {
			return err
		}
		defer c.Close()
		_ = c.SetDeadline(time.Now().Add(20 * time.Minute))
		if _, err := c.Write(message); err != nil {
			return fmt.Errorf("sending: %w", err)
		}
		ticker := time.NewTicker(5 * time.Millisecond)
		defer ticker.Stop()
		n, _, err := drain(&slow{c, ticker.C}, 1)
		total.Add(n)
		return err
	})
	r.done = append(r.done, fmt.Sprintf("%.0f MiB of results", mib(total.Load())))
	if err != nil {
		return err
	}
	if err := r.phase("load"); err != nil {
		return err
	}
	return r.settle("after")
}

// slow reads at each tick.
type slow struct {
	from  io.Reader
	ticks <-chan time.Time
}

func (s *slow) Read(p []byte) (int, error) {
	<-s.ticks
	return s.from.Read(p)
}
