package backend

import (
	"errors"
	"fmt"

	"github.com/pgebb/pgebb/internal/wire"
)

// ServerError is an ErrorResponse as a server sent it.
type ServerError struct {
	body []byte // constant
}

// Code is the SQLSTATE, empty when the server gave none.
func (e *ServerError) Code() string { return string(wire.ErrorField(e.body, 'C')) }

// Message is the primary message, empty when the server gave none.
func (e *ServerError) Message() string { return string(wire.ErrorField(e.body, 'M')) }

func (e *ServerError) Error() string {
	return fmt.Sprintf("%s (SQLSTATE %s)", e.Message(), e.Code())
}

// Encode is the message as it came, to be passed on to a client.
func (e *ServerError) Encode() []byte {
	return wire.AppendRaw(nil, wire.ErrorResponse, e.body)
}

// NotLetIn reports whether a server has answered, and does not let in who has logged in with
// what it did.
func NotLetIn(err error) bool {
	var se *ServerError
	return errors.As(err, &se) && (se.Code() == "28P01" || se.Code() == "28000")
}

// wrongPassword reports whether another password could do.
func wrongPassword(err error) bool {
	var se *ServerError
	return errors.As(err, &se) && se.Code() == "28P01"
}
