package backend

import "github.com/pgebb/pgebb/internal/wire"

// States as the console names them.
const (
	StateIdle              = "idle"
	StateActive            = "active"
	StateIdleInTransaction = "idle in transaction"
	StateTransactionError  = "transaction error"
	StateCopy              = "copy mode"
	StateForceClose        = "force close"
)

// State is what the server is doing, as the console shows it.
func (s *Server) State() string {
	switch {
	case s.phase == phaseIdle:
		return StateIdle
	case s.phase >= phaseClosing:
		return StateForceClose
	case s.copyIn || s.copyBoth:
		return StateCopy
	case s.Working():
		return StateActive
	case s.status == wire.Failed:
		return StateTransactionError
	case s.status == wire.InTransaction:
		return StateIdleInTransaction
	}
	return StateActive
}
