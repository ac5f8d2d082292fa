package backend

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"

	"github.com/pgebb/pgebb/internal/wire"
)

// maxLookup is how many bytes a look-up may answer with.
const maxLookup = 64 << 10

// LookUp runs a query with one parameter of type text at a connection of its own, with
// plain blocking calls until ctx ends, and returns its first row; nil if there is none. NULL
// is a nil value. What the query finds does not depend on anything that a client has
// asked for. An error of the server wraps a [ServerError].
func LookUp(ctx context.Context, t Target, query, parameter string) ([][]byte, error) {
	s, err := Connect(ctx, t)
	if err != nil {
		return nil, err
	}
	defer s.Conn.Close()
	stop := context.AfterFunc(ctx, func() { s.Conn.Close() })
	defer stop()
	if _, err := s.Conn.Write(appendLookUp(nil, query, parameter)); err != nil {
		return nil, fmt.Errorf("sending the query: %w", err)
	}
	row, err := readAnswer(s.Conn)
	if err != nil {
		return nil, err
	}
	s.Leave()
	return row, nil
}

// appendLookUp appends Parse, Bind, Execute and Sync.
func appendLookUp(b []byte, query, parameter string) []byte {
	const text = 25 // OID of the type
	parse := append(append([]byte{0}, query...), 0, 0, 1)
	parse = binary.BigEndian.AppendUint32(parse, text)
	bind := []byte{0, 0, 0, 0, 0, 1} // unnamed, of an unnamed one; all in text; one parameter
	bind = binary.BigEndian.AppendUint32(bind, uint32(len(parameter)))
	bind = append(append(bind, parameter...), 0, 0)
	b = wire.AppendRaw(b, wire.Parse, parse)
	b = wire.AppendRaw(b, wire.Bind, bind)
	b = wire.AppendRaw(b, wire.Execute, []byte{0, 0, 0, 0, 2}) // one row more than there should be
	return wire.AppendEmpty(b, wire.Sync)
}

// readAnswer reads the answer up to its ReadyForQuery.
func readAnswer(conn net.Conn) (row [][]byte, err error) {
	var failure error
	total := 0
	for {
		var header [wire.HeaderSize]byte
		if _, err := io.ReadFull(conn, header[:]); err != nil {
			return nil, fmt.Errorf("reading the answer: %w", err)
		}
		typ, size := wire.Header(header[:])
		if total += size; size < wire.HeaderSize || size > maxLookup || total > maxLookup {
			return nil, fmt.Errorf("the answer has more than %d bytes", maxLookup)
		}
		body := make([]byte, size-wire.HeaderSize)
		if _, err := io.ReadFull(conn, body); err != nil {
			return nil, fmt.Errorf("reading the answer: %w", err)
		}
		switch typ {
		case wire.ErrorResponse:
			failure = &ServerError{body}
		case wire.DataRow:
			if row != nil {
				failure = errors.New("there is more than one row")
			} else if row, err = values(body); err != nil {
				return nil, err
			}
		case wire.ReadyForQuery:
			return row, failure
		}
	}
}

// values takes a DataRow apart.
func values(body []byte) ([][]byte, error) {
	malformed := errors.New("a malformed DataRow")
	if len(body) < 2 {
		return nil, malformed
	}
	n := int(binary.BigEndian.Uint16(body))
	row := make([][]byte, 0, min(n, len(body)/4))
	for body = body[2:]; n > 0; n-- {
		if len(body) < 4 {
			return nil, malformed
		}
		size := int64(int32(binary.BigEndian.Uint32(body)))
		body = body[4:]
		switch {
		case size == -1:
			row = append(row, nil)
		case size < 0 || size > int64(len(body)):
			return nil, malformed
		default:
			row = append(row, body[:size:size])
			body = body[size:]
		}
	}
	return row, nil
}
