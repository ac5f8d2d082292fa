package frontend

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/pgebb/pgebb/backend"
	"github.com/pgebb/pgebb/internal/verdict"
	"github.com/pgebb/pgebb/internal/wire"
	"github.com/pgebb/pgebb/pool"
)

// This file is LISTEN in transaction and statement mode, with pub_sub_channel_size. Its
// statements are carried out on whatever server the client has (package backend), and what has
// become of them is known at the end of the transaction. What the client listens to then is
// listened to for it at a connection of its own (pool.PubSub), also while it has no server.
//
// Nothing is lost or given twice at the transition: a notification of pgebb's own, the mark,
// divides what comes to the server's session and goes to the client from there from what comes
// to the other connection. The client is told that its transaction has ended behind the mark.

const (
	// maxChannels is how many channels a client can listen to.
	maxChannels = 1000

	// heardAtOnce is how many bytes of notifications a client is sent in one piece.
	heardAtOnce = 16 << 10

	// heardPieces is how many pieces a client is sent before its loop turns to others.
	heardPieces = 16
)

// listens is what a client has that listens, or has wanted to. It belongs to the client's loop.
type listens struct {
	subscriber *pool.Subscriber
	channels   map[string]struct{} // that it listens to; replaced, never changed
	next       map[string]struct{} // that it listens to behind the mark; nil unless that is awaited
	mark       string              // the payload of that
	pending    int                 // of the mark and the answer to sending it, how many have not come yet

	asked bool   // for the connection
	there bool   // it was
	lack  *Error // why it cannot be; nil if it can
}

// followsListen reports whether LISTEN works for the client.
func (c *Client) followsListen() bool { return c.f.pubSub.Load() && c.judges() }

// listener is the client as one who listens.
func (c *Client) listener() *listens {
	if c.listens == nil {
		c.listens = &listens{subscriber: c.pool.PubSub().Subscribe(c.id, c.woken)}
	}
	return c.listens
}

// listened deals with a message that has to do with LISTEN. It returns the index behind it if
// it is refused, i if it cannot be dealt with yet, or -1 if it is to be passed on.
func (c *Client) listened(o *output, i int, typ byte, size int, v verdict.Verdict) int {
	if v.Has(verdict.Listen) {
		l := c.listener()
		if !l.connected() {
			if l.lack == nil {
				c.connectListener(l)
				return i
			}
			e := l.lack
			l.lack = nil
			next, _ := c.refuse(o, i, typ, size, e)
			return next
		}
		l.there = false // it may be lost again
		if encoding, _ := l.subscriber.PubSub().Connected(); encoding != c.server.Encoding() {
			next, _ := c.refuse(o, i, typ, size, errListenEncoding(encoding))
			return next
		}
	} else if c.listens == nil || len(c.listens.channels) == 0 {
		return -1 // an UNLISTEN of what is not listened to
	}
	if v.Has(verdict.Unlisten) && !v.Has(verdict.Discard) && c.listens.channels != nil {
		c.working()
		o.staged = c.server.Equalize(o.stage(i, i), slices.Sorted(maps.Keys(c.listens.channels)))
	}
	c.server.MayListen()
	return -1
}

// connected reports whether there is a connection that can listen.
func (l *listens) connected() bool {
	if l.there {
		return true
	}
	_, ok := l.subscriber.PubSub().Connected()
	return ok
}

// connectListener waits for one; the client is not read meanwhile.
func (c *Client) connectListener(l *listens) {
	c.stalled = true
	if l.asked {
		return
	}
	l.asked = true
	l.subscriber.PubSub().Connect(c.postListen(func(err error) {
		l.asked, l.there = false, err == nil
		if err != nil {
			l.lack = errNoListener(err)
		}
		c.stalled = false
		if c.state == stateIdle || c.state == stateActive {
			c.proceed()
		}
	}))
}

// postListen makes f a function that can be called in any goroutine, and runs on the client's
// loop. A client that waits for it is not moved to another.
func (c *Client) postListen(f func(error)) func(error) {
	l := c.Loop()
	return func(err error) {
		l.Post(func() {
			if c.state != stateGone && c.state != stateLeaving {
				f(err)
			}
		})
	}
}

// follow finds out what the client listens to at the end of a transaction, whose ReadyForQuery
// it is given when that is so.
func (c *Client) follow(s *backend.Server) {
	c.state = stateLinking
	err := s.Channels(func(names []string, all bool, err error) {
		if err != nil {
			c.followed(s, errSessionState(err))
			return
		}
		c.subscribe(s, names, all)
	})
	if err != nil {
		s.Broken(err) // calls ServerLost
	}
}

// subscribe acts on what was found out.
func (c *Client) subscribe(s *backend.Server, names []string, all bool) {
	l := c.listener()
	pubsub := l.subscriber.PubSub()
	next := make(map[string]struct{}, len(names))
	if !all {
		maps.Copy(next, l.channels)
	}
	var more, less []string
	for _, name := range names {
		if name == pubsub.Marks() {
			continue // from before
		}
		if strings.HasPrefix(name, backend.OwnPrefix) {
			c.followed(s, errReservedChannel(name))
			return
		}
		next[name] = struct{}{}
		if _, has := l.channels[name]; !has {
			more = append(more, name)
		}
	}
	for name := range l.channels {
		if _, has := next[name]; !has {
			less = append(less, name)
		}
	}
	if len(next) > maxChannels {
		c.followed(s, errTooManyChannels(maxChannels))
		return
	}
	if len(less) > 0 {
		pubsub.Unlisten(l.subscriber, less)
		kept := maps.Clone(l.channels)
		maps.DeleteFunc(kept, func(name string, _ struct{}) bool { _, has := next[name]; return !has })
		l.channels = kept
	}
	if len(more) == 0 {
		c.followed(s, nil)
		return
	}
	c.await(s, more, next)
}

// await has the channels listened to, and sends the mark.
func (c *Client) await(s *backend.Server, more []string, next map[string]struct{}) {
	l := c.listens
	pubsub := l.subscriber.PubSub()
	mark := fmt.Sprint(c.f.marks.Add(1), " ", c.id)
	l.next, l.mark, l.pending = next, mark, 2
	step := func(then func()) func(error) {
		return func(err error) {
			switch {
			case c.server != s || c.state != stateLinking || l.next == nil || l.mark != mark: // it is over
			case err != nil:
				pubsub.Unlisten(l.subscriber, more)
				c.followed(s, errNoListener(err))
			default:
				then()
			}
		}
	}
	arrived := step(func() {
		if l.pending--; l.pending == 0 {
			l.channels = next
			c.followed(s, nil)
		}
	})
	late := step(func() {})
	c.after(c.pool.Settings().RollbackTimeout, func() { late(errNoMark) })
	pubsub.Listen(l.subscriber, more, c.postListen(step(func() {
		pubsub.Await(mark, l.subscriber, more, c.postListen(arrived))
		if err := s.Mark(pubsub.Marks(), mark, arrived); err != nil {
			s.Broken(err) // calls ServerLost
		}
	})))
}

// errNoMark says that the two connections do not hear of each other.
var errNoMark = errors.New("what a server notifies is not heard")

// followed ends a transaction after which it is known what the client listens to; e is nil
// unless it does not listen to what it has asked for.
func (c *Client) followed(s *backend.Server, e *Error) {
	if c.listens != nil {
		c.listens.next = nil
	}
	s.Followed()
	c.state, c.stalled = stateActive, false
	var b []byte
	if e != nil {
		c.totals.errors++
		c.f.logError(c, e)
		b = appendError(nil, e)
	}
	c.write(appendReady(b))
	c.releaseIfDone()
	if c.state == stateIdle || c.state == stateActive {
		c.proceed()
	}
}

// Hears implements [backend.Client].
func (c *Client) Hears(n wire.Notification) bool {
	if bytes.HasPrefix(n.Channel, []byte(backend.OwnPrefix)) {
		if l := c.listens; l != nil && l.next != nil && string(n.Payload) == l.mark {
			l.channels = l.next // from here on it comes from the other connection
		}
		return false
	}
	if c.listens == nil {
		return true
	}
	_, has := c.listens.channels[string(n.Channel)]
	return !has
}

// woken is called, in any goroutine, when there is something to hear.
func (c *Client) woken() {
	l := c.Loop()
	if l == nil {
		return // it is on its way to another, where it looks
	}
	l.Post(func() {
		if c.Loop() == l {
			c.hear()
		}
	})
}

// hear gives the client its notifications if it is between transactions, and takes what it is
// given.
func (c *Client) hear() {
	l := c.listens
	if l == nil {
		return
	}
	if c.dead || c.begun || !c.betweenTransactions() {
		l.subscriber.Declined()
		return
	}
	for i := 0; ; i++ {
		if c.dead || c.Pending() > 0 {
			l.subscriber.Declined()
			break
		}
		if i == heardPieces {
			c.woken()
			return
		}
		b := l.subscriber.Take(heardAtOnce)
		if len(b) == 0 {
			break
		}
		c.write(b)
	}
	if l.subscriber.Ended() {
		set := c.pool.Settings()
		c.bye(errPoolRemoved(set.User, set.Database))
	}
}

func (c *Client) betweenTransactions() bool {
	switch c.state {
	case stateIdle, stateWaiting:
		return true
	case stateActive:
		return c.server.Settled()
	}
	return false
}

// leaveListeners is called when the client is gone.
func (c *Client) leaveListeners() {
	if c.listens != nil {
		c.listens.subscriber.Leave()
		c.listens = nil
	}
}
