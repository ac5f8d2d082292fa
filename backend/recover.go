package backend

import (
	"context"
	"log/slog"
	"time"

	"github.com/pgebb/pgebb/internal/loop"
	"github.com/pgebb/pgebb/internal/wire"
)

// RecoveryPolicy is what to do with a server whose client is done with it or has
// vanished.
type RecoveryPolicy struct {
	Drain    bool          // wait for outstanding answers; otherwise close such a server
	Rollback bool          // end an open transaction; otherwise close such a server
	Reset    bool          // the client had the session to itself: DISCARD ALL
	Judged   bool          // [Server.Touch] is told of everything that the server is sent
	Renamed  bool          // what PREPARE makes has a name of ours and may stay
	Listens  bool          // LISTEN is followed, see listens.go
	Timeout  time.Duration // for all of it
}

// endTimeout is how long a server that was told to end may take; after it its
// connection is cut and its place in the pool given up as free.
const endTimeout = 5 * time.Second

// cancelTimeout is how long a cancel request may take.
const cancelTimeout = 5 * time.Second

// Release takes the server from its client. cut says that the client's last
// message was passed on in part only. The server goes back to its pool once it is
// clean, at once if it is already, or is closed.
func (s *Server) Release(cut bool) {
	s.client = nil
	if s.Settled() && !cut && s.touched.flags|s.remains == 0 && !s.recovery.Reset && s.statements.len() <= s.policy.Limit {
		s.free()
		return
	}
	s.phase = phaseRecover
	s.Since = s.Loop().Now()
	s.deadline = s.after(s.recovery.Timeout, func() {
		if s.phase == phaseRecover && !s.waiting {
			s.giveUp()
		}
	})
	busy := s.Working() || s.open || s.skipping
	switch {
	case cut, s.lost, s.doubtful > 0, s.copyBoth,
		!s.recovery.Drain && busy,
		!s.recovery.Rollback && s.status != wire.Idle:
		s.giveUp()
		return
	}
	s.resync = busy
	s.recovery.Reset = s.recovery.Reset || s.reset
	s.Resume()
	s.recover()
}

// after runs f on the server's loop after d, unless the server has ended.
func (s *Server) after(d time.Duration, f func()) *time.Timer {
	l := s.Loop()
	return time.AfterFunc(d, func() {
		l.Post(func() {
			if s.phase != phaseEnded {
				f()
			}
		})
	})
}

// recover does the next step towards a clean server; it is called again when
// something was answered.
func (s *Server) recover() {
	var err error
	switch {
	case s.waiting:
	case s.lost, s.doubtful > 0, s.copyBoth:
		s.giveUp()
	case s.copyIn:
		switch end, _, _ := s.ops.copyEnd(); {
		case end < 0:
			s.ops.push(wire.CopyFail)
			err = s.Send(wire.AppendCopyFail(nil, "the client has disconnected"))
		case s.ops.first() == wire.Execute && !s.ops.endBehind(end):
			err = s.rollBack() // until more comes Postgres keeps what it has to say
		}
	case s.skipping:
		s.Sent(wire.Sync, nil)
		err = s.Send(wire.AppendEmpty(nil, wire.Sync))
	case s.open:
		err = s.rollBack()
	case s.ops.len() > 0 || s.left > 0 || s.Pending() > 0:
		// More answers come.
	case s.status != wire.Idle:
		s.Totals.Rollbacks++
		s.Stats.Rollbacks++
		err = s.Ask([]string{"ROLLBACK"}, func(failures []Failure) {
			if s.status != wire.Idle {
				s.giveUp() // whatever that is, it does not end
				return
			}
			s.cleaned(failures)
		})
	case s.recovery.Reset:
		s.recovery.Reset = false
		s.Stats.Cleaned++
		err = s.Ask([]string{"DISCARD ALL"}, func(failures []Failure) {
			s.params, s.reset, s.statements = Set{}, false, keeps{}
			s.endListening()
			s.touched, s.remains = touched{}, 0
			s.cleaned(failures)
		})
	case s.touched.flags|s.remains != 0:
		queries, then := s.cleaning()
		if len(queries) == 0 {
			then()
			s.recover()
			return
		}
		s.Stats.Cleaned++
		err = s.Ask(queries, func(failures []Failure) {
			then()
			s.cleaned(failures)
		})
	default:
		if excess := s.excess(); excess != nil {
			err = s.ask(excess, 1, s.cleaned)
			break
		}
		s.free()
	}
	if err != nil {
		s.end(err)
	}
}

// rollBack ends a batch without a Sync, which would commit what there is of it.
func (s *Server) rollBack() error {
	s.Totals.Rollbacks++
	s.Stats.Rollbacks++
	s.Sent(wire.Query, nil)
	return s.Send(wire.AppendQuery(nil, "ROLLBACK"))
}

// cleaned goes on after a cleaning query.
func (s *Server) cleaned(failures []Failure) {
	if len(failures) > 0 {
		s.giveUp()
		return
	}
	s.recover()
}

// giveUp closes a server that cannot be brought back to a clean state, or is not to be.
func (s *Server) giveUp() {
	if s.phase < phaseClosing {
		s.Stats.OutOfSync++
	}
	s.Retire()
}

// Retire closes the server. Its place in the pool is free when Postgres has ended
// its side, so that there are never more server processes than places. A query
// under way is cancelled.
func (s *Server) Retire() {
	if s.phase >= phaseClosing {
		return
	}
	if s.phase == phaseIdle {
		s.owner.Retiring(s)
	}
	busy := s.Working() || s.left > 0 || s.open || s.skipping
	s.stopDeadline()
	exchange := s.exchange
	s.client, s.exchange, s.phase = nil, nil, phaseClosing
	if exchange != nil && exchange.lost != nil {
		exchange.lost(ErrUnused)
	}
	s.holder.Store(0)
	s.deadline = s.after(endTimeout, func() { s.end(ErrUnused) })
	if busy {
		s.Stats.ForceClosed++
		s.Cancel(func() {})
	} else if err := s.Send(wire.AppendEmpty(nil, wire.Terminate)); err != nil {
		s.end(err)
		return
	}
	if err := s.EndWrite(); err != nil {
		s.end(err)
		return
	}
	s.Resume()
}

// Cancel asks Postgres to cancel what the server is doing. Until the request has
// gone through, which is when Postgres closes its connection, the server is not
// handed to anybody. done is called then, in any goroutine.
func (s *Server) Cancel(done func()) {
	if len(s.secret) == 0 {
		done() // Postgres gave no key
		return
	}
	s.cancels++
	l := s.Loop()
	go s.sendCancel(l, done)
}

// sendCancel runs in a goroutine of its own that ends within cancelTimeout.
func (s *Server) sendCancel(l *loop.Loop, done func()) {
	defer done()
	ctx, stop := context.WithTimeout(context.Background(), cancelTimeout)
	defer stop()
	if err := Cancel(ctx, s.Target, s.PID, s.secret); err != nil {
		slog.Warn("cancel request failed", "server_pid", s.PID, "address", s.Target.Address, "error", err)
	}
	l.Post(func() {
		s.cancels--
		if s.waiting && s.cancels == 0 && s.phase == phaseRecover {
			s.free()
		}
	})
}
