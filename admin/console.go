package admin

import (
	"bufio"
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgproto3"
	"github.com/jackc/pgx/v5/pgtype"
)

// maxMessage is the longest message in bytes that the console reads.
const maxMessage = 64 << 10

// Console serves operators. It is safe for concurrent use.
type Console struct {
	src      Sources
	averages averages

	mu       sync.Mutex
	sessions map[uint32]*session // by process id; guarded by mu
}

// New makes a console.
func New(src Sources) *Console { return &Console{src: src, sessions: map[uint32]*session{}} }

// session is one operator. It belongs to the goroutine of Serve.
type session struct {
	*Console
	dialect  Dialect
	operator bool // false for who may only look
	conn     net.Conn
	in       *bufio.Reader // of conn
	log      *slog.Logger
	pg       *pgproto3.Backend
	types    *pgtype.Map
	key      [8]byte // process id and secret for cancel requests; constant

	statements map[string]*statement
	portals    map[string]*portal
	skipping   bool // after an error in the extended protocol, up to the Sync

	cancelMu sync.Mutex
	cancel   context.CancelFunc // of the command that is being run; nil between; guarded by cancelMu
}

// Serve talks to one operator, whose login is done up to and including
// AuthenticationOk, until that one leaves or the connection is closed. Both the simple
// and the extended protocol are spoken. operator is false for who may only look. Commands
// that do something are logged.
func (c *Console) Serve(conn net.Conn, dialect Dialect, operator bool, log *slog.Logger) error {
	in := bufio.NewReader(conn)
	s := &session{
		Console: c, dialect: dialect, operator: operator, conn: conn, in: in, log: log, pg: pgproto3.NewBackend(in, conn), types: pgtype.NewMap(),
		statements: map[string]*statement{}, portals: map[string]*portal{},
	}
	s.pg.SetMaxBodyLen(maxMessage)
	c.enter(s)
	defer c.leave(s)
	s.greet()
	for {
		if err := s.pg.Flush(); err != nil {
			return fmt.Errorf("writing to the console's client: %w", err)
		}
		m, err := s.pg.Receive()
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, net.ErrClosed) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("reading from the console's client: %w", err)
		}
		if _, leaves := m.(*pgproto3.Terminate); leaves {
			return nil
		}
		s.handle(m)
	}
}

// enter gives a session its key.
func (c *Console) enter(s *session) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for {
		_, _ = rand.Read(s.key[:]) // never fails
		s.key[0] &= 0x7f           // process ids are positive
		if c.sessions[s.pid()] == nil {
			break
		}
	}
	c.sessions[s.pid()] = s
}

func (c *Console) leave(s *session) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.sessions, s.pid())
}

func (s *session) pid() uint32 { return binary.BigEndian.Uint32(s.key[:4]) }

// operators is how many sessions there are.
func (c *Console) operators() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.sessions)
}

// Cancel ends the wait of the command that a session with this key has under way, if
// there is one.
func (c *Console) Cancel(pid uint32, secret []byte) {
	c.mu.Lock()
	s := c.sessions[pid]
	c.mu.Unlock()
	if s == nil || subtle.ConstantTimeCompare(secret, s.key[4:]) == 0 {
		return
	}
	s.cancelMu.Lock()
	defer s.cancelMu.Unlock()
	if s.cancel != nil {
		s.cancel()
	}
}

func (s *session) greet() {
	for _, p := range [][2]string{
		{"server_name", "pgebb"}, {"server_encoding", "UTF8"}, {"client_encoding", "UTF8"},
		{"server_version", s.serverVersion()}, {"standard_conforming_strings", "on"},
		{"DateStyle", "ISO, MDY"}, {"integer_datetimes", "on"}, {"TimeZone", "GMT"}, {"is_superuser", "off"},
	} {
		s.pg.Send(&pgproto3.ParameterStatus{Name: p[0], Value: p[1]})
	}
	s.pg.Send(&pgproto3.BackendKeyData{ProcessID: s.pid(), SecretKey: s.key[4:]})
	s.ready()
}

func (s *session) ready() { s.pg.Send(&pgproto3.ReadyForQuery{TxStatus: 'I'}) }

func (s *session) fail(e *commandError) {
	s.pg.Send(&pgproto3.ErrorResponse{Severity: "ERROR", SeverityUnlocalized: "ERROR", Code: e.code, Message: e.message, Hint: e.hint})
}

func (s *session) notice(message, detail string) {
	s.pg.Send(&pgproto3.NoticeResponse{Severity: "NOTICE", SeverityUnlocalized: "NOTICE", Code: "00000", Message: message, Detail: detail})
}

func (s *session) handle(m pgproto3.FrontendMessage) {
	switch m := m.(type) {
	case *pgproto3.Query:
		s.query(m.String)
		s.ready()
		return
	case *pgproto3.Sync:
		s.skipping = false
		s.ready()
		return
	}
	if s.skipping {
		return
	}
	if err := s.extended(m); err != nil {
		s.fail(err)
		s.skipping = true
	}
}

// query answers a Query, which may hold several statements.
func (s *session) query(text string) {
	parts := split(text)
	if len(parts) == 0 {
		s.pg.Send(&pgproto3.EmptyQueryResponse{})
	}
	for _, part := range parts {
		st, e := parse(part, s.dialect, s.operator)
		if e == nil {
			e = s.execute(&portal{st, nil}, true)
		}
		if e != nil {
			s.fail(e)
			return
		}
	}
}

// execute runs a statement and sends its rows and its CommandComplete; describe says to
// send the columns before them.
func (s *session) execute(p *portal, describe bool) *commandError {
	if p.cmd == nil {
		s.pg.Send(&pgproto3.EmptyQueryResponse{})
		return nil
	}
	if p.cmd.run != nil {
		rows, err := s.run(p.statement)
		if err != nil {
			return err
		}
		if describe {
			s.describeRows(p.statement, p.formats)
		}
		if err := s.sendRows(p, rows); err != nil {
			return err
		}
	}
	s.pg.Send(&pgproto3.CommandComplete{CommandTag: []byte(p.tag)})
	return nil
}

// run makes the rows of a statement. The command may wait; that ends when the operator
// leaves, or cancels.
func (s *session) run(st *statement) ([][]*string, *commandError) {
	ctx, cancel := context.WithCancel(context.Background())
	s.setCancel(cancel)
	stop := s.watch(cancel)
	logged := ""
	log := func(command string) {
		logged = command
		s.log.Info("console command", "command", command)
	}
	if !st.cmd.ReadOnly {
		log(st.text())
	}
	rows, err := st.cmd.run(&request{
		Console: s.Console, ctx: ctx, args: st.args, dialect: s.dialect, notice: s.notice, name: st.name, operator: s.operator, log: log,
	})
	if err != nil && logged != "" {
		s.log.Info("console command failed", "command", logged, "error", err)
	}
	stop()
	s.setCancel(nil)
	cancel()
	var e *commandError
	switch {
	case err == nil:
		return rows, nil
	case errors.As(err, &e):
		return nil, e
	}
	return nil, &commandError{"58000", err.Error(), ""}
}

func (s *session) setCancel(cancel context.CancelFunc) {
	s.cancelMu.Lock()
	defer s.cancelMu.Unlock()
	s.cancel = cancel
}

// watch calls left when the operator leaves. What else is said meanwhile is kept for
// later. Its goroutine ends with stop.
func (s *session) watch(left func()) (stop func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		if _, err := s.in.Peek(1); err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
			left()
		}
	}()
	return func() {
		_ = s.conn.SetReadDeadline(time.Unix(1, 0)) // fails if the connection is closed, and then Peek has ended
		<-done
		_ = s.conn.SetReadDeadline(time.Time{})
	}
}

func (s *session) sendRows(p *portal, rows [][]*string) *commandError {
	for _, r := range rows {
		if p.filter != nil && !p.filter(r) {
			continue
		}
		d := &pgproto3.DataRow{}
		for n, i := range p.shown {
			v, err := s.encode(r[i], p.cmd.Columns[i].OID, formatOf(p.formats, n))
			if err != nil {
				return &commandError{"22P03", err.Error(), ""}
			}
			d.Values = append(d.Values, v)
		}
		s.pg.Send(d)
	}
	return nil
}

// encode turns the text of a value into the format that is wanted.
func (s *session) encode(v *string, oid uint32, format int16) ([]byte, error) {
	if v == nil {
		return nil, nil
	}
	if format == pgtype.TextFormatCode {
		return []byte(*v), nil
	}
	t, ok := s.types.TypeForOID(oid)
	if !ok {
		return nil, fmt.Errorf("no binary format for type %d", oid)
	}
	value, err := t.Codec.DecodeValue(s.types, oid, pgtype.TextFormatCode, []byte(*v))
	if err != nil {
		return nil, fmt.Errorf("encoding %q: %w", *v, err)
	}
	return s.types.Encode(oid, format, value, []byte{})
}
