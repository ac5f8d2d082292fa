package backend

import (
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/pgebb/pgebb/cache"
	"github.com/pgebb/pgebb/internal/loop"
	"github.com/pgebb/pgebb/internal/verdict"
	"github.com/pgebb/pgebb/internal/wire"
)

// maxWhole is the largest message in bytes that is collected because its body
// must be read (ParameterStatus, CommandComplete and the like). A larger one is
// streamed past unread.
const maxWhole = 16 << 10

// Client is who holds a server: a client's session. Its methods run on the
// server's loop.
type Client interface {
	// FromServer takes messages, or a part of one, for the client. p is valid
	// during the call only.
	FromServer(p []byte)
	// Blocked reports that the client does not take what it was given; the
	// server is read again after [Server.Resume].
	Blocked() bool
	// ParameterChanged says that the session's run-time parameters are now s's.
	ParameterChanged(s *Server)
	// Answered is called when something was answered, once all that was read
	// has been passed on; the client may let the server go there.
	Answered(s *Server)
	// ServerTakes is called when bytes that the server did not take before have
	// been taken.
	ServerTakes(s *Server)
	// ServerLost says that the server's connection is gone; it is the client's
	// no longer.
	ServerLost(s *Server, reason error)
	// Hears decides on a notification that came to the session of a client for whom LISTEN is
	// followed, see [RecoveryPolicy]: whether it is to be passed on. What it refers to is
	// valid during the call only.
	Hears(n wire.Notification) bool
	// Undefine takes back that a name stands for a statement, and releases that; the
	// empty name is that of the unnamed one.
	Undefine(name string, st *cache.Statement)
	// Restore takes back that a name was closed; false if the client has none.
	Restore(name string, st *cache.Statement) bool
	// UndefineAll says that Postgres has dropped all prepared statements.
	UndefineAll()
}

// Owner is the pool that a server belongs to. Its methods run on the server's
// loop.
type Owner interface {
	// Freed gets a server back that is clean and that nobody holds.
	Freed(s *Server)
	// Lost says that a server has ended: its place is free.
	Lost(s *Server, reason error)
	// Retiring says that an idle server is being closed and must not be handed
	// out; it is lost a little later.
	Retiring(s *Server)
	// Refused is told the SQLSTATE of each ErrorResponse to a client. It is valid during
	// the call only.
	Refused(code []byte)
	// Registry is where the statements of clients are interned.
	Registry() *cache.Registry
}

// Server is one connection to Postgres. Except for the fields that say
// otherwise it belongs to the goroutine of its loop.
type Server struct {
	loop.Conn

	ID       uint64           // unique in the process; constant
	PID      uint32           // of the server process; constant
	Target   Target           // where it is connected to and as whom; constant
	Greeting *Greeting        // what it reported at its login; constant
	Born     time.Duration    // when it was ready, in [loop.Now]; constant
	Expires  time.Duration    // when it is too old to be used again; guarded by the lock of its pool
	Stats    *Counters        // of its pool on its loop
	Totals   Totals           // of this server
	errors   uint64           // ErrorResponses that the client who holds it has not been asked for, see TakeErrors
	Since    time.Duration    // of the present state
	holder   atomic.Uint64    // id of who holds it, to prove that nobody else does
	secret   []byte           // the key for cancel requests; constant
	owner    Owner            // constant
	client   Client           // who holds it; nil while idle, cleaned or closing
	recovery RecoveryPolicy   // what to do when its client vanished; set at checkout
	policy   *StatementPolicy // set at checkout

	params Set    // what its session has that differs from Greeting
	status byte   // of the last ReadyForQuery: wire.Idle, …
	phase  phase  //
	held   []byte // the start of a message of which more must be read

	left int  // bytes still to come of the message that is streamed past
	drop bool // they are not for the client

	ops       ops
	doubtful  int  // Syncs in ops that a failed COPY may have read, see replies.go
	open      bool // extended messages were sent behind the last Sync
	skipping  bool // Postgres ignores everything up to a Sync not sent yet
	copyIn    bool // Postgres reads COPY data
	copyEnded bool // and was sent the end of it
	copyBoth  bool // a streaming replication protocol is spoken
	lost      bool // counting is not possible any more: never used again
	reset     bool // the session has state that no tracking knows: DISCARD ALL before re-use
	listening bool // LISTEN was run: notifications are for the client
	mayListen bool // what the client listens to may have changed, see listens.go
	readyHeld bool // the client has not been given the last ReadyForQuery
	equal     bool // the session listens to what the client listens to
	noted     bool // equalNote may be set
	resync    bool // its client has left in the middle of something, and that is being brought to its end
	answered  bool // something was answered during the present scan
	altered   bool // the transaction has changed what statements are about
	refusing  bool // a message of the present batch is refused here
	urged     bool // the client waits for room in ops, see backlog.go
	failed    bool // the last answer was an ErrorResponse without a ReadyForQuery since

	statements   keeps    // that Postgres has, or will have when it has answered
	records      records  // see there
	naming       int      // how many of them define or forget names
	sealed       int      // how many of these belong to an earlier batch
	deallocating *record  // what the Query under way is to deallocate
	dropping     []uint64 // IDs of statements that the batch at hand has parsed a DEALLOCATE of and not executed it
	injection    []byte   // the ErrorResponse to a Parse of ours ahead of a Query; nil once that is answered
	made         []byte   // answers of ours that go behind the message at hand
	checkouts    uint64   // counts Take
	unnamed      uint64   // the checkout whose client has defined the unnamed statement; 0 if none
	unnamedNow   bool     // and that was in the batch at hand

	touched  touched       // what may have been done to its session, see clean.go
	remains  verdict.Flags // what is known to be left in it
	exchange *exchange     // messages of our own that are being answered
	kept     time.Duration // Since of a server that is being inspected; 0 for none
	cancels  int           // cancel requests under way for it
	waiting  bool          // clean, but a cancel request is under way
	deadline *time.Timer
}

// phase is what a server is doing.
type phase uint8

const (
	phaseIdle    phase = iota // in the pool
	phaseHeld                 // a client's
	phaseRecover              // being brought back to a clean state
	phaseClosing              // told to end; read up to the end of the stream
	phaseEnded
)

// serverIDs numbers servers.
var serverIDs atomic.Uint64

// NewServer makes a server of a login and puts it on a loop, on whose goroutine
// it must be called. The login's connection is the server's from then on, also
// when there is an error.
func NewServer(l *loop.Loop, t Target, session *Session, owner Owner) (*Server, error) {
	s := &Server{
		ID: serverIDs.Add(1), PID: session.PID, Target: t, Born: l.Now(), Since: l.Now(),
		Greeting: NewGreeting(session.Params), secret: session.Secret, owner: owner, status: wire.Idle,
	}
	if _, encrypted := session.Conn.(*loop.TLS); !encrypted {
		s.Target.TLS = nil
	} else {
		s.Target.TLS = t.TLS.Insisting() // also for cancel requests
	}
	s.ops.clear()
	if err := s.Init(session.Conn, s); err != nil {
		return nil, fmt.Errorf("putting a server on its loop: %w", err)
	}
	if err := l.Add(&s.Conn); err != nil {
		s.Close()
		return nil, fmt.Errorf("putting a server on its loop: %w", err)
	}
	return s, nil
}

// Status is the transaction status of the last ReadyForQuery.
func (s *Server) Status() byte { return s.status }

// Params is the set of run-time parameters of the server's session.
func (s *Server) Params() Set { return s.params }

// InMessage reports whether the client was given a part of a message, so that whatever it is
// told next it takes for the rest.
func (s *Server) InMessage() bool { return s.left > 0 && !s.drop }

// Idle reports whether the server can be handed out.
func (s *Server) Idle() bool { return s.phase == phaseIdle }

// Holder is the id given at Take, 0 while nobody holds the server. Any
// goroutine may ask.
func (s *Server) Holder() uint64 { return s.holder.Load() }

// Take gives an idle server to a client with an id other than 0.
func (s *Server) Take(c Client, id uint64, recovery RecoveryPolicy, policy *StatementPolicy) {
	if s.phase != phaseIdle || !s.holder.CompareAndSwap(0, id) {
		panic(fmt.Sprintf("bug: server %d is taken by %d in phase %d while %d holds it", s.ID, id, s.phase, s.holder.Load()))
	}
	s.client, s.phase, s.recovery, s.policy = c, phaseHeld, recovery, policy
	s.checkouts++
	s.errors, s.resync, s.urged = 0, false, false
	s.Since = s.Loop().Now()
}

// TakeErrors is how many ErrorResponses the client who holds the server was sent since it
// last asked.
func (s *Server) TakeErrors() (n uint64) {
	n, s.errors = s.errors, 0
	return n
}

// free returns a clean server to its pool.
func (s *Server) free() {
	if s.resync {
		s.resync = false
		s.Stats.Resynced++
	}
	if s.cancels > 0 {
		s.client, s.phase, s.waiting = nil, phaseRecover, true
		return
	}
	s.holder.Store(0)
	s.stopDeadline()
	s.client, s.phase, s.waiting = nil, phaseIdle, false
	s.Since = s.Loop().Now()
	if s.kept > 0 {
		s.Since, s.kept = s.kept, 0 // that was no use
	}
	s.owner.Freed(s)
}

// Readable implements [loop.Handler].
func (s *Server) Readable() {
	if s.phase == phaseHeld && s.client.Blocked() {
		return
	}
	buf := s.Loop().Buffer()
	kept := copy(buf, s.held)
	n, more, err := s.Read(buf[kept:])
	if err != nil {
		s.end(err)
		return
	}
	if n == 0 {
		return
	}
	s.held = nil
	s.Totals.Received += uint64(n)
	if s.phase == phaseClosing {
		s.Resume()
		return
	}
	if err := s.scan(buf[:kept+n]); err != nil {
		s.fail(err)
		return
	}
	if more {
		s.Resume()
	}
	s.afterScan()
}

// afterScan acts on what a scan found. The server may be somebody else's, or
// closed, when it returns.
func (s *Server) afterScan() {
	s.eased()
	switch {
	case s.exchange != nil && s.exchange.left == 0:
		s.endExchange()
	case s.phase == phaseHeld && s.answered:
		s.answered = false
		s.client.Answered(s)
	case s.phase == phaseRecover && s.exchange == nil:
		s.recover()
	}
}

// Drained implements [loop.Handler].
func (s *Server) Drained() {
	if s.phase == phaseHeld {
		s.client.ServerTakes(s)
	}
}

// Broken implements [loop.Handler]. What Postgres said before its end is still
// worth reading, so that is left to tell.
func (s *Server) Broken(err error) {
	s.end(err)
}

// scan goes through a span from Postgres, message by message, and passes on
// what is for the client in as few pieces as there are.
func (s *Server) scan(b []byte) error {
	run, i := 0, 0
	if s.left > 0 {
		i = min(s.left, len(b))
		s.left -= i
		if s.drop {
			run = i
			s.exchange.more(b[:i])
		}
		if s.left == 0 && len(s.made) > 0 {
			s.emit(b[run:i])
			s.emitMade()
			run = i
		}
	}
	for len(b)-i >= wire.HeaderSize {
		typ, size := wire.Header(b[i:])
		if !wire.Legal(size) {
			return fmt.Errorf("message %q with an illegal length of %d bytes", typ, size-1)
		}
		whole := i+size <= len(b)
		if whole && (typ == wire.DataRow || typ == wire.CopyData) && s.phase == phaseHeld && s.exchange == nil {
			// Most of what there is, and nothing to know about it.
			i += size
			continue
		}
		if !whole && size <= maxWhole && (readsBody(typ) || typ == wire.DataRow && s.exchange != nil) {
			break
		}
		if !whole && size > maxWhole && (s.phase == phaseIdle || typ == wire.ReadyForQuery) {
			return fmt.Errorf("message %q of %d bytes that nobody asked for", typ, size-1)
		}
		body := b[i+wire.HeaderSize : min(i+size, len(b))]
		if !whole && typ == wire.DataRow {
			s.exchange.begin(body, size-wire.HeaderSize)
		}
		forward, err := s.message(typ, body, whole)
		if err != nil {
			return err
		}
		if !forward {
			s.emit(b[run:i])
			run = min(i+size, len(b))
		}
		if !whole {
			s.left, s.drop = i+size-len(b), !forward
			i = len(b)
			break
		}
		i += size
		if len(s.made) > 0 {
			s.emit(b[min(run, i):i])
			s.emitMade()
			run = i
		}
	}
	if run < i {
		s.emit(b[run:i])
	}
	if i < len(b) {
		s.held = append(make([]byte, 0, len(b)-i), b[i:]...)
	}
	return nil
}

func (s *Server) emitMade() {
	made := s.made
	s.made = nil
	s.emit(made)
}

func (s *Server) emit(p []byte) {
	if len(p) > 0 && s.client != nil {
		s.client.FromServer(p)
	}
}

// readsBody says which messages are waited for because their body matters.
func readsBody(typ byte) bool {
	switch typ {
	case wire.ReadyForQuery, wire.ParameterStatus, wire.CommandComplete, wire.ErrorResponse, wire.NotificationResponse:
		return true
	}
	return false
}

// fail gives up a server that has said goodbye, or does not keep to the protocol.
func (s *Server) fail(err error) {
	if said := (*farewell)(nil); errors.As(err, &said) {
		s.end(said)
		return
	}
	s.end(fmt.Errorf("protocol violation by the server: %w", err))
}

// end is called when the connection is over, for whatever reason.
func (s *Server) end(reason error) {
	if s.phase == phaseEnded {
		return
	}
	s.undoAll()
	client, phase := s.client, s.phase
	s.phase, s.client = phaseEnded, nil
	if phase == phaseClosing {
		reason = ErrUnused
	} else {
		s.Stats.Lost++
	}
	s.holder.Store(0)
	s.stopDeadline()
	exchange := s.exchange
	s.exchange = nil
	if phase == phaseIdle {
		s.owner.Retiring(s)
	}
	s.Close()
	if client != nil {
		client.ServerLost(s, reason)
	}
	s.owner.Lost(s, reason)
	if exchange != nil && exchange.lost != nil {
		exchange.lost(reason)
	}
}

func (s *Server) stopDeadline() {
	if s.deadline != nil {
		s.deadline.Stop()
		s.deadline = nil
	}
}

// ErrUnused is the reason given for the end of a server that was closed because
// the pool no longer needs it.
var ErrUnused = errors.New("closed by the pool")
