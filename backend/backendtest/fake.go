// Package backendtest is a Postgres for tests that is none: it lets everybody in and
// answers every Query with an empty result, which is enough for who counts and hands
// out servers.
package backendtest

import (
	"bytes"
	"encoding/binary"
	"io"
	"net"
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/pgebb/pgebb/internal/wire"
)

// Fake is a server that listens. It is safe for concurrent use.
type Fake struct {
	ln   net.Listener
	wg   sync.WaitGroup
	open atomic.Int64
	most atomic.Int64

	mu    sync.Mutex
	conns map[net.Conn]struct{}
	hold  bool // logins wait
	freed *sync.Cond
	deny  []byte // an ErrorResponse for logins, nil to let them in

	silent   bool                               // queries are not answered
	standby  string                             // what in_hot_standby is reported as; empty for not at all
	row      []string                           // the answer to queries about the WAL; nil for none
	scripted func(conn net.Conn, typ byte) bool // see Answer
	greeting []byte                             // see Greet
	stay     bool
}

// Start starts a fake on a loopback port.
func Start() (*Fake, error) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	f := &Fake{ln: ln, conns: make(map[net.Conn]struct{})}
	f.freed = sync.NewCond(&f.mu)
	f.wg.Go(f.accept)
	return f, nil
}

// Port is where it listens, at 127.0.0.1.
func (f *Fake) Port() int { return f.ln.Addr().(*net.TCPAddr).Port }

// Open is the number of connections that are open, Most the most there ever were.
func (f *Fake) Open() int { return int(f.open.Load()) }

// Most is the largest number of connections that were open at the same time.
func (f *Fake) Most() int { return int(f.most.Load()) }

// Hold makes logins wait until Hold(false).
func (f *Fake) Hold(hold bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.hold = hold
	f.freed.Broadcast()
}

// Deny makes logins fail with an SQLSTATE, or let in again with an empty one.
func (f *Fake) Deny(code string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.deny = nil
	if code != "" {
		f.deny = wire.AppendFields(nil, wire.ErrorResponse, wire.Field{Type: 'S', Value: "FATAL"}, wire.Field{Type: 'C', Value: code}, wire.Field{Type: 'M', Value: "no"})
	}
}

// Silence makes it answer no queries, until Silence(false).
func (f *Fake) Silence(silent bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.silent = silent
}

// Be makes it a primary or a replica, with a timeline and a position in the WAL.
func (f *Fake) Be(replica bool, timeline int, lsn string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.standby, f.row = "off", []string{"f", strconv.Itoa(timeline), lsn}
	if replica {
		f.standby, f.row = "on", []string{"t", "0", lsn}
	}
}

// Kill closes all connections.
func (f *Fake) Kill() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for conn := range f.conns {
		conn.Close()
	}
}

// Stop closes everything and returns when all goroutines have ended.
func (f *Fake) Stop() {
	f.ln.Close()
	f.Hold(false)
	f.Kill()
	f.wg.Wait()
}

func (f *Fake) accept() {
	for {
		conn, err := f.ln.Accept()
		if err != nil {
			return
		}
		f.mu.Lock()
		f.conns[conn] = struct{}{}
		f.mu.Unlock()
		n := f.open.Add(1)
		for most := f.most.Load(); n > most && !f.most.CompareAndSwap(most, n); most = f.most.Load() {
		}
		f.wg.Go(func() { f.serve(conn) })
	}
}

func (f *Fake) serve(conn net.Conn) {
	defer func() {
		f.mu.Lock()
		delete(f.conns, conn)
		f.mu.Unlock()
		f.open.Add(-1) // before who is connected can know
		conn.Close()
	}()
	if !f.logIn(conn) {
		return
	}
	for {
		var header [wire.HeaderSize]byte
		if _, err := io.ReadFull(conn, header[:]); err != nil {
			return
		}
		typ, size := wire.Header(header[:])
		body := make([]byte, size-wire.HeaderSize)
		if _, err := io.ReadFull(conn, body); err != nil || typ == wire.Terminate {
			return
		}
		f.mu.Lock()
		scripted := f.scripted
		f.mu.Unlock()
		if scripted != nil {
			if !scripted(conn, typ) {
				return
			}
			continue
		}
		if typ == wire.Query || typ == wire.Sync {
			if _, err := conn.Write(f.answer(body)); err != nil {
				return
			}
		}
	}
}

// answer is what a query gets.
func (f *Fake) answer(sql []byte) []byte {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.silent {
		return nil
	}
	var b []byte
	if f.row != nil && bytes.Contains(sql, []byte("pg_is_in_recovery")) {
		row := binary.BigEndian.AppendUint16(nil, uint16(len(f.row)))
		for _, column := range f.row {
			row = append(binary.BigEndian.AppendUint32(row, uint32(len(column))), column...)
		}
		b = wire.AppendRaw(b, wire.DataRow, row)
	}
	return wire.AppendReadyForQuery(wire.AppendRaw(b, wire.CommandComplete, []byte("SELECT 0\x00")), wire.Idle)
}

func (f *Fake) logIn(conn net.Conn) bool {
	var head [8]byte
	if _, err := io.ReadFull(conn, head[:]); err != nil {
		return false
	}
	if binary.BigEndian.Uint32(head[4:]) == wire.SSLRequestCode {
		if _, err := conn.Write([]byte{'N'}); err != nil {
			return false
		}
		return f.logIn(conn)
	}
	if _, err := io.CopyN(io.Discard, conn, int64(binary.BigEndian.Uint32(head[:]))-8); err != nil {
		return false
	}
	f.mu.Lock()
	for f.hold {
		f.freed.Wait()
	}
	deny, standby, greeting, stay := f.deny, f.standby, f.greeting, f.stay
	f.mu.Unlock()
	if greeting != nil {
		_, err := conn.Write(greeting)
		return err == nil && stay
	}
	if deny != nil {
		_, _ = conn.Write(deny)
		return false
	}
	b := wire.AppendRaw(nil, wire.Authentication, []byte{0, 0, 0, 0})
	b = wire.AppendParameterStatus(b, "server_version", "15.0")
	if standby != "" {
		b = wire.AppendParameterStatus(b, "in_hot_standby", standby)
	}
	_, err := conn.Write(wire.AppendReadyForQuery(b, wire.Idle))
	return err == nil
}
