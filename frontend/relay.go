package frontend

import (
	"github.com/pgebb/pgebb/config"
	"github.com/pgebb/pgebb/internal/wire"
)

// consume goes through input message by message, gets a server when one is needed,
// and passes on a run of messages in one piece. It returns how much it has dealt
// with; what is behind that must be given to it again, with more or later. After a
// failure the client is to be closed.
func (c *Client) consume(b []byte) (used int, failure *Error) {
	o := output{c: c, b: b}
	i := 0
	if c.left > 0 {
		i = min(int(c.left), len(b))
		c.goesOn(i)
		if c.drop {
			o.skip(i)
		}
	}
	for len(b)-i >= wire.HeaderSize {
		typ, size := wire.Header(b[i:])
		if e := c.check(typ, size); e != nil {
			o.flush(i)
			return len(b), e
		}
		whole := i+size <= len(b)
		body := b[i+wire.HeaderSize : min(i+size, len(b))]
		if !whole && (size < streamedFrom || len(body) == 0 || c.awaited(typ, size)) {
			break
		}
		c.note(b, i)
		if typ == wire.Terminate {
			if !o.flush(i) {
				return o.first, nil
			}
			c.goodbye(nil)
			return len(b), nil
		}
		if c.server == nil {
			passOn, e := c.withoutServer(typ, body)
			if e != nil {
				return len(b), e
			}
			if passOn && !c.checkout(b[i:]) {
				return i, nil
			}
			if !passOn {
				i = c.skipMessage(b, i, size)
				o.skip(i)
				continue
			}
		}
		if c.roams && c.leaves(typ, b[i:]) || c.server.Overfull() || c.server.Following() {
			return c.holdBack(&o, i), nil
		}
		if names(typ) {
			next, e := c.understood(&o, i, typ, size, body)
			switch {
			case e != nil:
				o.flush(i)
				return len(b), e
			case next > i:
				i = next
				continue
			case next == i: // it cannot be dealt with yet
				return c.passOn(&o, i), nil
			}
		}
		c.working()
		c.server.Sent(typ, body)
		if !whole {
			c.left, c.drop = int32(i+size-len(b)), false
			i = len(b)
			break
		}
		i += size
	}
	return c.passOn(&o, i), nil
}

// understood deals with a message whose meaning matters. It returns the index behind it, or i
// if it cannot be dealt with yet, or -1 if it is to be passed on as it is.
func (c *Client) understood(o *output, i int, typ byte, size int, body []byte) (next int, failure *Error) {
	c.noteLength(typ, size)
	if c.judges() {
		if next := c.judged(o, i, typ, size, body); next >= 0 {
			return next, nil
		}
	}
	if typ != wire.FunctionCall && c.renames() {
		return c.renamed(o, i, typ, size)
	}
	return -1, nil
}

// passOn passes on what was gathered up to index i, and returns up to where the input is
// dealt with.
func (c *Client) passOn(o *output, i int) (used int) {
	if !o.flush(i) {
		return o.first
	}
	if o.unnamed != nil {
		c.statementsOf().parsed = c.internUnnamed(o.unnamed)
	}
	if c.server != nil && c.left == 0 && i > 0 {
		c.releaseIfDone()
	}
	return i
}

// holdBack passes on as passOn does, where the client is not to be read on before it is
// answered. If that is because too much is unanswered, it has Postgres give the answers that it keeps.
func (c *Client) holdBack(o *output, i int) (used int) {
	s := c.server
	used = c.passOn(o, i)
	switch {
	case c.server != s:
	case s.Overfull():
		c.stalled = true
		s.Urge()
	case s.Following():
		c.stalled = true
	}
	return used
}

// output gathers what is to be passed on of a span b.
type output struct {
	c      *Client
	b      []byte
	first  int    // b[first:] has not been passed on
	run    int    // b[run:] has not been staged
	staged []byte // in front of it: messages that were put in the place of the client's

	unnamed []byte // text of an unnamed Parse in b that is not bound yet
}

// skip leaves out what there is up to index i; nothing may be gathered.
func (o *output) skip(i int) { o.first, o.run = i, i }

// stage returns what is staged, with everything up to index i, for messages of our own to
// be appended; they stand in the place of what comes up to index next.
func (o *output) stage(i, next int) []byte {
	if o.staged == nil {
		o.staged = o.c.f.scratch[o.c.Loop().ID()][:0]
	}
	b := append(o.staged, o.b[o.run:i]...)
	o.run = next
	return b
}

// flush passes on everything up to index i; false if the server is lost and the client
// has another, or waits for one, because nothing had been sent to it yet.
func (o *output) flush(i int) bool {
	p := o.b[o.run:i]
	if o.staged != nil {
		p = append(o.staged, p...)
		if cap(p) <= maxScratch {
			o.c.f.scratch[o.c.Loop().ID()] = p[:0]
		}
	}
	if !o.c.forward(p) {
		return false
	}
	o.first, o.run, o.staged = i, i, nil
	return true
}

// skipMessage goes past a message that is not for the server.
func (c *Client) skipMessage(b []byte, i, size int) int {
	if i+size > len(b) {
		c.left, c.drop = int32(i+size-len(b)), true
		return len(b)
	}
	return i + size
}

// withoutServer deals with what can be said to a client that has no server, and
// says whether the message must be passed on to one.
func (c *Client) withoutServer(typ byte, body []byte) (passOn bool, failure *Error) {
	switch typ {
	case wire.Sync:
		c.skipping = false
		if len(body) > 0 {
			return true, nil // it is malformed, as Postgres will say
		}
		c.write(c.appendReady(nil))
		return false, nil
	case wire.Flush:
		// Nothing to flush, unless it is malformed.
		return len(body) > 0 && !c.skipping, nil
	case wire.CopyData, wire.CopyDone, wire.CopyFail:
		// COPY messages outside of a COPY are ignored by Postgres, because they can
		// be on their way when one fails.
		return false, nil
	}
	if c.skipping {
		return false, nil
	}
	if c.pool.Settings().Mode == config.Statement && c.f.beginsTransaction(typ, body) {
		c.reject(typ, errStatementMode())
		return false, nil
	}
	if typ == wire.Query && c.f.aggressive.Load() && c.defers(body) {
		return false, nil
	}
	return true, nil
}

// reject answers a request without a server, as Postgres answers one that fails:
// a Query gets its ReadyForQuery, after an extended message all is ignored up to
// the Sync. The message itself is still to be skipped.
func (c *Client) reject(typ byte, e *Error) {
	c.totals.errors++
	c.f.logError(c, e)
	b := appendError(nil, e)
	if typ == wire.Query || typ == wire.FunctionCall {
		b = appendReady(b)
	} else {
		c.skipping = true
	}
	c.write(b)
}

// rejectHeld does that for the request at the head of what is held.
func (c *Client) rejectHeld(e *Error) {
	b := c.held
	c.hold(nil)
	c.state = stateIdle
	typ, size := wire.Header(b)
	c.reject(typ, e)
	rest := c.skipMessage(b, 0, size)
	c.notedUpTo(rest)
	if rest < len(b) {
		c.hold(append([]byte(nil), b[rest:]...))
	}
	c.proceed()
}

// forward passes input on to the server; false if that server is lost and the
// client has another, or waits for one, because nothing had been sent to it yet.
func (c *Client) forward(p []byte) bool {
	if len(p) == 0 || c.server == nil {
		return true
	}
	s := c.server
	err := s.Send(p)
	if err == nil {
		c.sent = true
		return true
	}
	retry := !c.sent
	if retry {
		c.left = 0
	}
	s.Broken(err) // calls ServerLost
	return !retry
}

// sqlOf returns what there is of the SQL text in a Query or a Parse.
func sqlOf(typ byte, body []byte) ([]byte, bool) {
	switch typ {
	case wire.Query:
	case wire.Parse:
		if _, rest, ok := wire.CString(body); ok {
			body = rest
		}
	default:
		return nil, false
	}
	sql, _, _ := wire.CString(body)
	return sql, true
}

// messageTypes are the messages that a client may send after its login.
var messageTypes = func() (legal [256]bool) {
	for _, typ := range []byte{
		wire.Query, wire.Parse, wire.Bind, wire.Describe, wire.Execute, wire.Close, wire.Sync, wire.Flush,
		wire.FunctionCall, wire.CopyData, wire.CopyDone, wire.CopyFail, wire.Terminate,
	} {
		legal[typ] = true
	}
	return legal
}()

// shortMessage is what Postgres allows, in bytes, for messages that have no
// reason to be long (PQ_SMALL_MESSAGE_LIMIT), without the type.
const shortMessage = 10000

// check refuses what is no message, and what is longer than it may be.
func (c *Client) check(typ byte, size int) *Error {
	if e := checkMessage(typ, size); e != nil {
		return e
	}
	return c.tooLong(typ, size)
}

// checkMessage refuses what Postgres would refuse.
func checkMessage(typ byte, size int) *Error {
	if !messageTypes[typ] {
		return errProtocol("invalid frontend message type %d", typ)
	}
	legal := wire.Legal(size)
	switch typ {
	case wire.Close, wire.Describe, wire.Execute, wire.Flush, wire.Sync, wire.CopyDone, wire.CopyFail, wire.Terminate:
		legal = legal && size-1 <= shortMessage
	}
	if !legal {
		return errProtocol("invalid message length %d in a message of type %q", size-1, typ)
	}
	return nil
}
