package frontend

import (
	"net"

	"github.com/pgebb/pgebb/internal/wire"
)

// Error is what a client is told by pgebb itself, as opposed to what a server
// said, which is forwarded as it is. Every such error is made by a function of
// errors.go, so that the file is the whole list.
type Error struct {
	Severity string // ERROR or FATAL
	Code     string // SQLSTATE, five characters
	Message  string
	Detail   string // may be empty
	Hint     string // may be empty

	// Private is for the log only: addresses, and what else is none of a client's business.
	// The client is told where in the log it is. It may be empty.
	Private string

	// Cause is for the log only, and the client is not told that there is more: it must not
	// learn what was wrong. It may be empty.
	Cause string
}

func (e *Error) Error() string { return e.Severity + " " + e.Code + ": " + e.Message }

// appendError appends the ErrorResponse that tells a client of an error.
func appendError(b []byte, e *Error) []byte {
	return wire.AppendFields(b, wire.ErrorResponse,
		wire.Field{Type: 'S', Value: e.Severity}, wire.Field{Type: 'V', Value: e.Severity},
		wire.Field{Type: 'C', Value: e.Code}, wire.Field{Type: 'M', Value: e.Message},
		wire.Field{Type: 'D', Value: e.Detail}, wire.Field{Type: 'H', Value: e.Hint})
}

// writeError tells a client that is not on a loop yet. Whether it gets through does
// not matter: the connection is closed next.
func writeError(conn net.Conn, e *Error) { _, _ = conn.Write(appendError(nil, e)) }
