package backend

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// maxAnswer is the most in bytes that the rows of the answer to a question of ours may have.
// It is what the run-time parameters of a session can have for them to follow a client.
const maxAnswer = 1 << 20

// ErrAnswer says that an answer is larger.
var ErrAnswer = fmt.Errorf("more than %d bytes", maxAnswer)

var errRow = errors.New("a malformed DataRow")

// answer collects the rows of an answer, message by message or piece by piece. It belongs
// to the server's loop.
type answer struct {
	rows  [][]string // NULL is the empty string
	bytes int        // of all messages so far
	open  []byte     // the beginning of a row that comes in pieces; its capacity is its length
	err   error
}

// whole takes a row that is there as a whole.
func (a *answer) whole(body []byte) {
	if !a.room(len(body)) {
		return
	}
	row, ok := readRow(body)
	if !ok {
		a.err = errRow
		return
	}
	a.rows = append(a.rows, row)
}

// begin takes the beginning of a row of size bytes that comes in pieces, if that is wanted.
func (e *exchange) begin(part []byte, size int) {
	if e != nil && e.answer != nil && e.answer.room(size) {
		e.answer.open = append(make([]byte, 0, size), part...)
	}
}

// more takes what comes behind it.
func (e *exchange) more(part []byte) {
	if e == nil || e.answer == nil || e.answer.open == nil {
		return
	}
	a := e.answer
	a.open = append(a.open, part...)
	if len(a.open) < cap(a.open) {
		return
	}
	body := a.open
	a.open, a.bytes = nil, a.bytes-len(body)
	a.whole(body)
}

// room reports whether a row is to be taken.
func (a *answer) room(size int) bool {
	a.bytes += size
	if a.bytes > maxAnswer && a.err == nil {
		a.rows, a.err = nil, ErrAnswer
	}
	return a.err == nil
}

// AskRows sends a query of our own, see [Server.Ask], and gives done the rows of the answer,
// of all its statements in their order.
func (s *Server) AskRows(sql string, done func(rows [][]string, err error)) error {
	a := &answer{}
	err := s.Ask([]string{sql}, func(failures []Failure) {
		if len(failures) > 0 {
			done(nil, failures[0])
			return
		}
		done(a.rows, a.err)
	})
	s.exchange.answer = a
	return err
}

// readRow reads the columns of a DataRow.
func readRow(body []byte) (row []string, ok bool) {
	if len(body) < 2 {
		return nil, false
	}
	n := int(binary.BigEndian.Uint16(body))
	body = body[2:]
	for range n {
		if len(body) < 4 {
			return nil, false
		}
		size := int32(binary.BigEndian.Uint32(body))
		body = body[4:]
		if size < 0 {
			row = append(row, "")
			continue
		}
		if int(size) > len(body) {
			return nil, false
		}
		row = append(row, string(body[:size]))
		body = body[size:]
	}
	return row, true
}
