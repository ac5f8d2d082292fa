package frontend

import (
	"net"

	"github.com/pgebb/pgebb/internal/wire"
)

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
