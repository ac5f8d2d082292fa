package admin

import (
	"fmt"

	"github.com/jackc/pgx/v5/pgproto3"
	"github.com/jackc/pgx/v5/pgtype"
)

// maxNames is how many statements, and how many portals, an operator may have.
const maxNames = 1000

// portal is a statement with the formats that its results are wanted in.
type portal struct {
	*statement
	formats []int16
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
		return s.execute(p, false)
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
		if st, e = parse(parts[0], s.dialect, s.operator); e != nil {
			return e
		}
	}
	if len(s.statements) >= maxNames {
		return &commandError{"54000", fmt.Sprintf("too many prepared statements on the console (%d)", maxNames), "Close some."}
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
	if len(s.portals) >= maxNames {
		return &commandError{"54000", fmt.Sprintf("too many portals on the console (%d)", maxNames), "Close some."}
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
	for n, i := range st.shown {
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
	case pgtype.Int4OID:
		return 4
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
