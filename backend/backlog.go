package backend

import "github.com/pgebb/pgebb/internal/wire"

// This file bounds what is kept of messages that Postgres has not answered. A batch may
// have any number of them, and until its Sync Postgres keeps up to 8 KiB of its answers, which is
// some 1,600 of the shortest.

// maxQueued is how many messages can be without an answer before no more are sent. What can be
// waited for for ever is in Postgres's buffer, so whoever waits has it flushed (see Urge).
const maxQueued = 16 << 10

// Overfull reports whether so many messages are without an answer that no more are to be sent;
// with Urge, [Client.Answered] is called when there is room again. During a COPY nothing of what
// a client may send has an answer.
func (s *Server) Overfull() bool { return s.ops.len() >= maxQueued && !s.lost && !s.copyIn }

// Urge has Postgres say what it has to say. It must be called between two messages.
func (s *Server) Urge() {
	if s.urged {
		return
	}
	s.urged = true
	if err := s.Send(wire.AppendEmpty(nil, wire.Flush)); err != nil {
		s.Broken(err)
	}
}

// eased notes that there is room again.
func (s *Server) eased() {
	if s.urged && s.phase == phaseHeld && s.ops.len() <= maxQueued/2 {
		s.urged, s.answered = false, true
	}
}
