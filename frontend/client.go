package frontend

import (
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/pgebb/pgebb/backend"
	"github.com/pgebb/pgebb/internal/loop"
	"github.com/pgebb/pgebb/internal/wire"
	"github.com/pgebb/pgebb/pool"
)

const (
	// firstPiece is how many bytes are read of a client that will have to wait for
	// a server; the rest stays in the kernel's socket buffers.
	firstPiece = 1 << 10

	// streamedFrom is the size in bytes from which a message is passed on as it
	// comes in. A smaller one is passed on whole, so that a slow client does not
	// hold a server, and a client that leaves in the middle of one ruins none.
	streamedFrom = 4 << 10

	// farewell is how long a client may take to read its last message.
	farewell = 2 * time.Second

	// maxRetries is how many servers may die in the hands of a client, one after
	// the other, before they were sent anything.
	maxRetries = 5
)

// state is what a client is doing.
type state uint8

const (
	stateStarting state = iota // logged in; its parameters are being tried on a server
	stateIdle                  // has no server and needs none
	stateWaiting               // in the queue of its pool
	stateLinking               // has a server that is not ready for it: its input is not read
	stateActive                // has a server and talks to it
	stateLeaving               // has been told goodbye; what it still sends is not read
	stateGone                  // closed
)

// Client is a connection to us after its login. It belongs to the goroutine of its
// loop. Between requests it holds no buffer, so its size is what an idle client
// costs.
type Client struct {
	loop.Conn
	waiter   pool.Waiter
	f        *Frontend
	pool     *pool.Pool
	server   *backend.Server   // nil unless linking or active
	home     *backend.Greeting // what it was told at its login; nil before the end of that
	params   backend.Set       // its run-time parameters, as Postgres spells them, on top of home
	start    *opening          // nil after the start
	cameWith backend.Set       // its run-time parameters at its login
	last     *Error            // what it will be told when all before it is answered, and then closed
	held     []byte            // input that cannot be dealt with yet; changed by hold

	prepared *statements // nil if it has no prepared statements
	listens  *listens    // nil if it has never wanted to listen

	collected []byte // the start of a Parse that is read as a whole; nil if none is; changed by collecting

	id      uint64
	key     uint32  // the process id that it was told, for cancel requests
	queries uint32  // of the server when last looked at; only differences matter
	keyed   *Client // the next with a key of the same bucket; guarded by keys.mu
	totals  totals

	left     int32  // bytes still to come of a message that is streamed past; no message is larger than wire.MaxMessage
	logged   uint16 // messages of the input that begin before this index are in the query log
	fresh    bool   // its last unnamed Parse is, and was not bound yet
	state    state
	role     pool.Access // what the client itself asks for; pool.Any if nothing
	minor    uint8       // of its protocol version
	drop     bool        // what is left of the message is not for the server
	skipping bool        // everything up to a Sync is ignored
	sent     bool        // the server has been sent something since the checkout
	busy     bool        // answers are outstanding, as of the last look
	eof      bool        // it will say no more, and may wait for answers
	stalled  bool        // its input depends on an answer
	begun    bool        // it is in a transaction whose BEGIN was not sent, or was sent by us, see begin.go
	split    bool        // its database had several hosts at the last checkout
	spent    bool        // its last unnamed statement was not kept, because it was bound in its batch
	roams    bool        // its server is a replica's, because it was reading
	dead     bool        // it cannot be written to; gone is about to be called
	unread   bool        // it is not read because there is too little memory, see short
	retries  uint8

	mark  time.Duration // when the present state of the transaction began
	began time.Duration // when the transaction began
}

// totals are what SHOW CLIENTS tells of a client. Times in nanoseconds.
type totals struct {
	connected                 time.Duration // when its connection was accepted, in loop.Now
	queries, transactions     uint64
	wait, queryTime, xactTime time.Duration
	received, sent, errors    uint64
}

// opening is what a client's start needs.
type opening struct {
	params []backend.Param
}

// Readable implements [loop.Handler].
func (c *Client) Readable() {
	switch c.state {
	case stateStarting, stateWaiting:
		if c.Gone() {
			c.gone(errGone)
		}
		return
	case stateLinking:
		c.notRead()
		return
	case stateLeaving:
		c.discard()
		return
	case stateGone:
		return
	}
	if c.eof {
		if c.Gone() {
			c.gone(errGone)
		}
		return
	}
	if c.Pending() > 0 && c.server == nil || c.server != nil && c.server.Pending() > 0 || c.stalled {
		return // resumed by Drained, ServerTakes or Answered
	}
	if c.collected != nil {
		c.collectMore()
		return
	}
	if c.short() {
		return
	}
	buf := c.Loop().Buffer()
	kept := copy(buf, c.held)
	room := buf[kept:]
	if c.server == nil && c.pool.Busy() {
		room = room[:min(c.firstPiece(), len(room))]
	}
	n, more, err := c.Read(room)
	if err != nil {
		c.ended(err)
		return
	}
	if n == 0 {
		return
	}
	c.totals.received += uint64(n)
	c.pool.Counters(c.Loop()).Received += uint64(n)
	if kept > 0 {
		c.hold(nil)
	}
	c.take(buf[:kept+n])
	if more {
		c.Resume()
	}
}

// firstPiece is how many bytes are read of the client when it will have to wait.
func (c *Client) firstPiece() int {
	if c.pool.Cluster().Split() {
		return routedPiece
	}
	return firstPiece
}

// collectMore goes on reading a Parse that is needed as a whole.
func (c *Client) collectMore() {
	have := len(c.collected)
	_, size := wire.Header(c.collected)
	if have == cap(c.collected) {
		if !c.f.budget.Room(int64(min(size, 2*have))) {
			c.f.budget.TurnedAway()
			c.bye(errProcessMemory(c.f.budget.Limit(), fmt.Sprintf("A Parse of %d bytes does not fit into what is given to messages on their way.", size)))
			return
		}
		c.collecting(append(make([]byte, 0, min(size, 2*have)), c.collected...))
	}
	n, more, err := c.Read(c.collected[have:cap(c.collected)])
	if err != nil {
		c.gone(err) // it has ended in the middle of a message
		return
	}
	c.totals.received += uint64(n)
	c.pool.Counters(c.Loop()).Received += uint64(n)
	c.collected = c.collected[:have+n]
	if len(c.collected) == size {
		b := c.collected
		c.collecting(nil)
		c.take(b)
	}
	if more {
		c.Resume()
	}
}

// notRead is for a client that cannot be read because its server is busy with
// something else, which is a matter of moments. If the client has hung up, it is not
// waited for longer than for its answers.
func (c *Client) notRead() {
	switch {
	case c.Gone():
		c.gone(errGone)
	case c.HungUp():
		c.after(c.pool.Settings().RollbackTimeout, func() {
			if c.state == stateLinking {
				c.gone(errGone)
			}
		})
	}
}

// take deals with input as far as it can and holds the rest. b is valid during the
// call only.
func (c *Client) take(b []byte) {
	used, failure := c.consume(b)
	c.notedUpTo(used)
	if c.state == stateGone {
		return
	}
	if failure != nil {
		c.last = failure
		c.goodbye(failure)
		return
	}
	if c.collected != nil {
		return
	}
	if used < len(b) {
		c.hold(append(make([]byte, 0, len(b)-used), b[used:]...))
	}
}

// proceed goes on with input that was held, and then with what can be read.
func (c *Client) proceed() {
	if b := c.held; b != nil {
		c.hold(nil)
		c.take(b)
	}
	c.Resume()
}

// discard reads what a client says that is not listened to any more.
func (c *Client) discard() {
	for range 16 {
		n, more, err := c.Read(c.Loop().Buffer())
		if err != nil {
			c.gone(err)
			return
		}
		if n == 0 || !more {
			return
		}
	}
	c.Resume()
}

// ended is called at the end of the client's stream.
func (c *Client) ended(err error) {
	if errors.Is(err, io.EOF) {
		c.hold(nil) // what was cut off is lost
		c.goodbye(err)
		return
	}
	c.gone(err)
}

// goodbye is called when the client will say no more, be it that it has said so, that
// it has ended its side, or that it is not listened to after an error. Like Postgres, pgebb carries out and answers what it
// asked for before. What takes longer than rollback_timeout is given up: a client that
// has vanished looks the same.
func (c *Client) goodbye(reason error) {
	c.eof = true
	if c.server == nil || c.left > 0 || !c.server.Working() || !c.server.Complete() {
		c.finish(reason)
		return
	}
	c.after(c.pool.Settings().RollbackTimeout, func() {
		if c.server != nil {
			c.letGo(true) // the server is closed and its query cancelled
			c.gone(errGone)
		}
	})
}

// finish closes the connection of a client that will say no more once it has got what
// it has been told. That may take it as long as it likes: it holds no server.
func (c *Client) finish(reason error) {
	if c.last != nil {
		c.bye(c.last)
		return
	}
	if c.Pending() == 0 {
		c.gone(reason)
		return
	}
	c.letGo(c.cut())
	c.state = stateIdle
}

// after runs f on the client's loop after d unless the client is gone by then.
func (c *Client) after(d time.Duration, f func()) {
	l := c.Loop()
	time.AfterFunc(d, func() {
		l.Post(func() {
			if c.state != stateGone && c.Loop() == l {
				f()
			}
		})
	})
}

// Drained implements [loop.Handler].
func (c *Client) Drained() {
	if c.state == stateLeaving {
		_ = c.EndWrite() // a client that is gone already is noticed by reading
		return
	}
	if c.eof && c.server == nil {
		c.gone(nil)
		return
	}
	if c.server != nil {
		c.server.Resume()
	}
	c.hear()
	c.Resume()
}

// Broken implements [loop.Handler].
func (c *Client) Broken(err error) { c.gone(err) }

// write sends bytes of our own to the client.
func (c *Client) write(p []byte) {
	if c.dead || c.state == stateGone {
		return
	}
	c.totals.sent += uint64(len(p))
	c.pool.Counters(c.Loop()).Sent += uint64(len(p))
	if err := c.Write(p); err != nil {
		// The caller may be in the middle of a server's answer.
		c.dead = true
		c.Loop().Post(func() { c.gone(err) })
	}
}

// bye tells the client why it is closed. The connection is closed in good order,
// because a reset could overtake the message.
func (c *Client) bye(e *Error) {
	if c.state == stateGone || c.state == stateLeaving {
		return
	}
	c.totals.errors++
	c.last = e
	c.f.logError(c, e)
	if c.server == nil || !c.server.InMessage() {
		c.write(appendError(nil, e))
	}
	c.leave()
}

// leave ends our side of the connection and waits a little for the client to end
// its own.
func (c *Client) leave() {
	c.letGo(c.cut())
	c.hold(nil)
	c.state = stateLeaving
	if c.Pending() == 0 {
		if err := c.EndWrite(); err != nil {
			c.gone(err)
			return
		}
	}
	c.after(farewell, func() { c.gone(errGone) })
	c.Resume()
}

// gone closes the client's connection and lets its server go.
func (c *Client) gone(reason error) {
	if c.state == stateGone {
		return
	}
	c.letGo(c.cut())
	c.state = stateGone
	c.start = nil
	c.hold(nil)
	c.collecting(nil)
	c.UndefineAll()
	c.leaveListeners()
	l := c.Loop()
	c.f.held[l.ID()].leave(c)
	c.Close()
	if c.last != nil {
		reason = c.last // that the client has ended its side, too, says nothing
	}
	c.f.left(c, l, reason)
}

// cut reports whether the server has got only a part of the client's last message.
func (c *Client) cut() bool { return c.left > 0 && !c.drop }

// letGo leaves the queue or the server, whichever the client is at.
func (c *Client) letGo(cut bool) {
	if c.state == stateWaiting || c.state == stateStarting {
		c.pool.Leave(&c.waiter)
	}
	if s := c.server; s != nil {
		c.account(s)
		c.server = nil
		s.Release(cut || c.state == stateLinking)
	}
}

// errGone is the reason given when a client is closed without an error of its own.
var errGone = errors.New("the client has disconnected")

// appendReady appends the ReadyForQuery of a client without a server.
func appendReady(b []byte) []byte { return wire.AppendReadyForQuery(b, wire.Idle) }
