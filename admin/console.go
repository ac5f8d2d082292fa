package admin

import (
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"

	"github.com/jackc/pgx/v5/pgproto3"
	"github.com/jackc/pgx/v5/pgtype"
)

// maxMessage is the longest message in bytes that the console reads.
const maxMessage = 64 << 10

// Console serves operators. It is safe for concurrent use.
type Console struct {
	src      Sources
	averages averages
}

// New makes a console.
func New(src Sources) *Console { return &Console{src: src} }

// session is one operator.
type session struct {
	c          *Console
	pg         *pgproto3.Backend
	types      *pgtype.Map
	statements map[string]*statement
	portals    map[string]*portal
	skipping   bool // after an error in the extended protocol, up to the Sync
}

// statement is what was parsed; cmd is nil for an empty one.
type statement struct {
	cmd     *Command
	tag     string
	columns []int // of cmd.Columns that are shown
}

// portal is a statement with the formats that its results are wanted in.
type portal struct {
	*statement
	formats []int16
}

// Serve talks to one operator, whose login is done up to and including
// AuthenticationOk, until that one leaves or the connection is closed. Both the simple
// and the extended protocol are spoken.
func (c *Console) Serve(conn net.Conn) error {
	s := &session{
		c: c, pg: pgproto3.NewBackend(conn, conn), types: pgtype.NewMap(),
		statements: map[string]*statement{}, portals: map[string]*portal{},
	}
	s.pg.SetMaxBodyLen(maxMessage)
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

func (s *session) greet() {
	for _, p := range [][2]string{
		{"server_name", "pgebb"}, {"server_encoding", "UTF8"}, {"client_encoding", "UTF8"},
		{"server_version", s.c.src.Version + " (pgebb)"}, {"standard_conforming_strings", "on"},
		{"DateStyle", "ISO, MDY"}, {"integer_datetimes", "on"},
	} {
		s.pg.Send(&pgproto3.ParameterStatus{Name: p[0], Value: p[1]})
	}
	key := make([]byte, 8)
	_, _ = rand.Read(key) // never fails; nothing on the console can be cancelled
	s.pg.Send(&pgproto3.BackendKeyData{ProcessID: binary.BigEndian.Uint32(key) >> 1, SecretKey: key[4:]})
	s.ready()
}

func (s *session) ready() { s.pg.Send(&pgproto3.ReadyForQuery{TxStatus: 'I'}) }

func (s *session) fail(code, message, hint string) {
	s.pg.Send(&pgproto3.ErrorResponse{Severity: "ERROR", SeverityUnlocalized: "ERROR", Code: code, Message: message, Hint: hint})
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
		s.fail(err.code, err.message, err.hint)
		s.skipping = true
	}
}

// commandError is an error that an operator gets.
type commandError struct{ code, message, hint string }

// query answers a Query, which may hold several statements.
func (s *session) query(text string) {
	parts := split(text)
	if len(parts) == 0 {
		s.pg.Send(&pgproto3.EmptyQueryResponse{})
	}
	for _, part := range parts {
		st, e := parse(part)
		if e == nil {
			s.describeRows(st, nil)
			e = s.execute(&portal{st, nil})
		}
		if e != nil {
			s.fail(e.code, e.message, e.hint)
			return
		}
	}
}

// parse finds out what a single statement is.
func parse(text string) (*statement, *commandError) {
	cmd, tag, rest := find(text)
	if cmd == nil {
		hint := "Known are " + known() + "."
		if s := suggest(text); s != "" {
			hint = "Did you mean " + s + "?"
		}
		// pgcli depends on this SQLSTATE.
		return nil, &commandError{"08P01", fmt.Sprintf("syntax error in admin command: %.100s", text), hint}
	}
	st := &statement{cmd: cmd, tag: tag}
	if cmd.run == nil {
		return st, nil
	}
	if rest != "" && cmd.Select == nil {
		return nil, &commandError{"08P01", fmt.Sprintf("syntax error in admin command: nothing can stand behind %s", cmd.Names[0]), ""}
	}
	columns, unknown := cmd.selectColumns(rest)
	if unknown != "" {
		return nil, &commandError{"42703", fmt.Sprintf("column %q does not exist", unknown), ""}
	}
	st.columns = columns
	return st, nil
}

// extended answers a message of the extended protocol.
func (s *session) extended(m pgproto3.FrontendMessage) *commandError {
	switch m := m.(type) {
	case *pgproto3.Parse:
		return s.parse(m)
	case *pgproto3.Bind:
		return s.bind(m)
	case *pgproto3.Describe:
		return s.describe(m)
	case *pgproto3.Execute:
		p := s.portals[m.Portal]
		if p == nil {
			return &commandError{"34000", fmt.Sprintf("portal %q does not exist", m.Portal), ""}
		}
		return s.execute(p)
	case *pgproto3.Close:
		if m.ObjectType == 'S' {
			delete(s.statements, m.Name)
		} else {
			delete(s.portals, m.Name)
		}
		s.pg.Send(&pgproto3.CloseComplete{})
		return nil
	case *pgproto3.Flush:
		return nil
	}
	return &commandError{"0A000", fmt.Sprintf("the console does not take messages of type %T", m), ""}
}

func (s *session) parse(m *pgproto3.Parse) *commandError {
	parts := split(m.Query)
	if len(parts) > 1 {
		return &commandError{"42601", "cannot insert multiple commands into a prepared statement", ""}
	}
	st := &statement{}
	if len(parts) == 1 {
		var e *commandError
		if st, e = parse(parts[0]); e != nil {
			return e
		}
	}
	if len(s.statements) >= 1000 {
		return &commandError{"54000", "too many prepared statements on the console (1000)", "Close some."}
	}
	s.statements[m.Name] = st
	s.pg.Send(&pgproto3.ParseComplete{})
	return nil
}

func (s *session) bind(m *pgproto3.Bind) *commandError {
	st := s.statements[m.PreparedStatement]
	if st == nil {
		return &commandError{"26000", fmt.Sprintf("prepared statement %q does not exist", m.PreparedStatement), ""}
	}
	if len(m.Parameters) > 0 {
		return &commandError{"08P01", "admin commands take no parameters", ""}
	}
	if len(s.portals) >= 1000 {
		return &commandError{"54000", "too many portals on the console (1000)", "Close some."}
	}
	s.portals[m.DestinationPortal] = &portal{st, append([]int16(nil), m.ResultFormatCodes...)}
	s.pg.Send(&pgproto3.BindComplete{})
	return nil
}

func (s *session) describe(m *pgproto3.Describe) *commandError {
	if m.ObjectType == 'S' {
		st := s.statements[m.Name]
		if st == nil {
			return &commandError{"26000", fmt.Sprintf("prepared statement %q does not exist", m.Name), ""}
		}
		s.pg.Send(&pgproto3.ParameterDescription{})
		if !s.describeRows(st, nil) {
			s.pg.Send(&pgproto3.NoData{})
		}
		return nil
	}
	p := s.portals[m.Name]
	if p == nil {
		return &commandError{"34000", fmt.Sprintf("portal %q does not exist", m.Name), ""}
	}
	if !s.describeRows(p.statement, p.formats) {
		s.pg.Send(&pgproto3.NoData{})
	}
	return nil
}

// describeRows sends a RowDescription; false if the statement has no rows.
func (s *session) describeRows(st *statement, formats []int16) bool {
	if st.cmd == nil || st.cmd.Columns == nil {
		return false
	}
	d := &pgproto3.RowDescription{}
	for n, i := range st.columns {
		c := st.cmd.Columns[i]
		d.Fields = append(d.Fields, pgproto3.FieldDescription{
			Name: []byte(c.Name), DataTypeOID: c.OID, DataTypeSize: sizeOf(c.OID), TypeModifier: -1, Format: formatOf(formats, n),
		})
	}
	s.pg.Send(d)
	return true
}

func sizeOf(oid uint32) int16 {
	switch oid {
	case pgtype.Int8OID:
		return 8
	case pgtype.BoolOID:
		return 1
	}
	return -1
}

// formatOf is the format of the nth column: none given means text, one given is for
// all.
func formatOf(formats []int16, n int) int16 {
	switch {
	case len(formats) == 1:
		return formats[0]
	case n < len(formats):
		return formats[n]
	}
	return pgtype.TextFormatCode
}

// execute runs a statement and sends its rows and its CommandComplete.
func (s *session) execute(p *portal) *commandError {
	if p.cmd == nil {
		s.pg.Send(&pgproto3.EmptyQueryResponse{})
		return nil
	}
	if p.cmd.run != nil {
		rows, err := p.cmd.run(s.c)
		if err != nil {
			return &commandError{"58000", err.Error(), ""}
		}
		for _, r := range rows {
			d := &pgproto3.DataRow{}
			for n, i := range p.columns {
				v, err := s.encode(r[i], p.cmd.Columns[i].OID, formatOf(p.formats, n))
				if err != nil {
					return &commandError{"22P03", err.Error(), ""}
				}
				d.Values = append(d.Values, v)
			}
			s.pg.Send(d)
		}
	}
	s.pg.Send(&pgproto3.CommandComplete{CommandTag: []byte(p.tag)})
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

// split returns the statements of a text, without comments and empty ones. Admin
// commands have no strings in which a semicolon could stand.
func split(text string) []string {
	var out []string
	for _, part := range strings.Split(stripComments(text), ";") {
		if part = strings.TrimSpace(part); part != "" {
			out = append(out, part)
		}
	}
	return out
}

func stripComments(text string) string {
	var b strings.Builder
	for len(text) > 0 {
		switch {
		case strings.HasPrefix(text, "--"):
			_, text, _ = strings.Cut(text, "\n")
		case strings.HasPrefix(text, "/*"):
			_, text, _ = strings.Cut(text, "*/")
			b.WriteByte(' ')
		default:
			b.WriteByte(text[0])
			text = text[1:]
		}
	}
	return b.String()
}
