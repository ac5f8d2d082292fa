package main

import (
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/pgebb/pgebb/frontend/frontendtest"
	"github.com/pgebb/pgebb/internal/wire"
)

// batch is how many statements a client prepares before it reads the answers.
const batch = 20

// filler is what makes statements as long as those that people write.
var filler = strings.Repeat("abcdefghij", 20)

// uniqueStatement is a text of about 200 bytes that is no other client's.
func uniqueStatement(client, i int) string {
	return fmt.Sprintf("SELECT %d AS n, '%s' AS p -- c%d", i, filler[:160], client)
}

// statements has clients prepare what nobody else does, run it, and never close it.
func statements(r *run, total int) error {
	const clients = 16
	n := r.scaled(total) / clients
	conns := make([]*frontendtest.Client, clients)
	var refused atomic.Int64
	defer func() {
		for _, c := range conns {
			if c != nil {
				c.Close()
			}
		}
	}()
	err := each(clients, func(i int) error {
		c, err := frontendtest.Connect(r.system.login)
		if err != nil {
			return err
		}
		conns[i] = c
		told, err := prepareAll(c, i, n)
		refused.Add(int64(told))
		return err
	})
	r.done = append(r.done, fmt.Sprintf("%d statements, %d of the batches of %d had some refused for want of memory", clients*n, refused.Load(), batch))
	if err == nil {
		err = r.phase("load")
	}
	if err == nil {
		err = r.settle("held")
	}
	if err != nil {
		return err
	}
	for i, c := range conns {
		code, err := exchange(c, runStatement(nil, name(0)))
		if err != nil || code != "" {
			return fmt.Errorf("client %d cannot run its oldest statement any more: SQLSTATE %q, %w", i, code, err)
		}
	}
	for _, c := range conns {
		c.Close()
	}
	return r.settle("left")
}

func name(i int) string { return fmt.Sprintf("_pg3_%d", i) }

// runStatement appends what runs a prepared statement once.
func runStatement(b []byte, name string) []byte {
	b = wire.AppendRaw(b, wire.Bind, append(append([]byte{0}, name...), 0, 0, 0, 0, 0, 0, 0))
	b = wire.AppendRaw(b, wire.Execute, []byte{0, 0, 0, 0, 0})
	return wire.AppendEmpty(b, wire.Sync)
}

// prepareAll returns how many batches were told that there is no memory.
func prepareAll(c *frontendtest.Client, client, n int) (refused int, err error) {
	_ = c.SetDeadline(time.Now().Add(time.Hour))
	var b []byte
	for i := 0; i < n; i += batch {
		b = b[:0]
		k := min(batch, n-i)
		for j := i; j < i+k; j++ {
			b = wire.AppendParse(b, name(j), uniqueStatement(client, j)+"\x00\x00\x00")
			b = runStatement(b, name(j))
		}
		if _, err := c.Write(b); err != nil {
			return refused, fmt.Errorf("sending: %w", err)
		}
		_, code, err := drain(c, k)
		switch {
		case err == nil && code == outOfMemory:
			refused++
		case err == nil && code != "":
			err = errors.New("SQLSTATE " + code)
		}
		if err != nil {
			return refused, fmt.Errorf("after %d statements: %w", i, err)
		}
	}
	return refused, nil
}

// outOfMemory is the SQLSTATE of a refusal for want of memory.
const outOfMemory = "53200"

// redefine has clients that prepare a statement and close it, again and again.
func redefine(r *run) error {
	var done atomic.Int64
	rounds := r.scaled(100_000)
	err := each(100, func(i int) error {
		c, err := frontendtest.Connect(r.system.login)
		if err != nil {
			return err
		}
		defer c.Close()
		_ = c.SetDeadline(time.Now().Add(time.Hour))
		var b []byte
		for k := 0; k < rounds; k += batch {
			b = b[:0]
			for j := k; j < k+batch; j++ {
				// Of many texts, so that they come and go on the servers, too.
				b = wire.AppendParse(b, "s", uniqueStatement(i, j%2000)+"\x00\x00\x00")
				b = wire.AppendRaw(b, wire.Close, []byte("Ss\x00"))
			}
			b = wire.AppendEmpty(b, wire.Sync)
			if _, err := c.Write(b); err != nil {
				return fmt.Errorf("sending: %w", err)
			}
			_, code, err := drain(c, 1)
			if err == nil && code != "" {
				err = errors.New("SQLSTATE " + code)
			}
			if err != nil {
				return fmt.Errorf("after %d statements: %w", k, err)
			}
			done.Add(batch)
		}
		return nil
	})
	r.done = append(r.done, fmt.Sprintf("%d statements defined and closed", done.Load()))
	if err != nil {
		return err
	}
	if err := r.phase("load"); err != nil {
		return err
	}
	return r.settle("left")
}
