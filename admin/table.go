package admin

import (
	"strconv"
	"time"

	"github.com/jackc/pgx/v5/pgtype"
)

// Column is a column of an answer.
type Column struct {
	Name string
	OID  uint32
}

// Table is an answer: columns and rows, each value as text, nil for NULL.
type Table struct {
	Columns []Column
	Rows    [][]*string
}

func text(names ...string) []Column    { return columns(pgtype.TextOID, names) }
func numeric(names ...string) []Column { return columns(pgtype.NumericOID, names) }
func integer(names ...string) []Column { return columns(pgtype.Int4OID, names) }
func bigint(names ...string) []Column  { return columns(pgtype.Int8OID, names) }
func boolean(names ...string) []Column { return columns(pgtype.BoolOID, names) }

func columns(oid uint32, names []string) []Column {
	var out []Column
	for _, n := range names {
		out = append(out, Column{n, oid})
	}
	return out
}

func concat(parts ...[]Column) []Column {
	var out []Column
	for _, p := range parts {
		out = append(out, p...)
	}
	return out
}

// row makes a row of values of any type that a table shows.
func row(values ...any) []*string {
	out := make([]*string, len(values))
	for i, v := range values {
		out[i] = show(v)
	}
	return out
}

func show(v any) *string {
	var s string
	switch x := v.(type) {
	case nil:
		return nil
	case string:
		s = x
	case int:
		s = strconv.Itoa(x)
	case int64:
		s = strconv.FormatInt(x, 10)
	case uint64:
		s = strconv.FormatUint(x, 10)
	case bool:
		s = "f"
		if x {
			s = "t"
		}
	case time.Time:
		if x.IsZero() {
			return nil
		}
		s = x.Format("2006-01-02 15:04:05.000 MST")
	case milliseconds:
		s = strconv.FormatFloat(float64(x)/1e6, 'f', 3, 64)
	case letter:
		if x != 0 {
			s = string(rune(x))
		}
	default:
		panic("bug: a value of a type that no table shows")
	}
	return &s
}

// milliseconds is a time in nanoseconds that is shown in milliseconds.
type milliseconds time.Duration

// letter is the type of a message.
type letter byte

// number reads a number.
func number(s string) (float64, bool) {
	n, err := strconv.ParseFloat(s, 64)
	return n, err == nil
}

// trimmed writes a number with as few digits as it takes.
func trimmed(n float64) string { return strconv.FormatFloat(n, 'g', -1, 64) }
