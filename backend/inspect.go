package backend

import (
	"errors"
	"fmt"
	"time"
)

// ErrSilent says that a server has not answered a question of ours in time.
var ErrSilent = errors.New("no answer to a health check")

// Inspect asks an idle server, which nobody else can be given, a question of the pool's
// own; the empty one is for a sign of life. When it is answered, the server goes back to
// its pool. One that does not answer within the timeout is closed. done is called once, on
// the server's loop, with the columns of the first row as text; NULL is the empty string.
func (s *Server) Inspect(sql string, timeout time.Duration, done func(row []string, err error)) {
	s.kept = max(s.Since, 1)
	s.phase, s.Totals.Checks = phaseRecover, s.Totals.Checks+1
	err := s.AskRows(sql, func(rows [][]string, err error) {
		s.stopDeadline()
		s.free()
		if err != nil || len(rows) == 0 {
			done(nil, err)
			return
		}
		done(rows[0], nil)
	})
	s.exchange.lost = func(reason error) { done(nil, reason) }
	s.limit(timeout)
	if err != nil {
		s.end(err)
	}
}

// Check asks a server that a client has just got for a sign of life, before the client may
// use it; done is called when there is one. A server that does not answer within the
// timeout is lost.
func (s *Server) Check(timeout time.Duration, done func()) error {
	s.Totals.Checks++
	err := s.Ask([]string{""}, func(failures []Failure) {
		s.stopDeadline()
		if len(failures) > 0 {
			s.end(failures[0])
			return
		}
		done()
	})
	s.limit(timeout)
	return err
}

// limit ends the server if its exchange takes longer than the timeout.
func (s *Server) limit(timeout time.Duration) {
	e := s.exchange
	s.deadline = s.after(timeout, func() {
		if s.exchange == e {
			s.end(fmt.Errorf("%w within %v", ErrSilent, timeout))
		}
	})
}
