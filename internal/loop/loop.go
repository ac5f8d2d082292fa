package loop

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pgebb/pgebb/internal/memory"
)

// BufferSize is the size in bytes of a loop's read buffer, and so the most
// that is read, and can become pending, in one go.
const BufferSize = 64 << 10

// idleTick is how often, at least, a loop looks after what is not urgent.
const idleTick = time.Second

// Loop is an event loop: one goroutine, started by New and ended by Stop, that
// runs the handlers of its connections.
type Loop struct {
	id   int     // constant
	poll *poller // constant
	done chan struct{}

	pending atomic.Int64 // bytes of all pending chunks
	parts   atomic.Int64 // bytes of TLS records that are there in part, or were read in part
	tick    atomic.Int64 // nanoseconds between two calls of onTick
	batched atomic.Int64 // reads and writes that were made together with others

	mu    sync.Mutex
	inbox []func() // guarded by mu

	// The rest belongs to the loop's goroutine.
	buf           []byte
	records       []byte  // ciphertext of the connection that is being read or written; nil before the first TLS
	conns         []*Conn // by file descriptor
	live          int     // connections in conns
	encrypted     int     // those of them with TLS
	gen           uint32
	again         []*Conn // to go on with before waiting
	batch         batch
	early         map[*Conn]*chunk // read ahead of connections whose handlers did not want it yet
	chunks        chunks
	pendingChunks int            // of all connections
	budget        *memory.Budget // pending bytes are taken from it; nil without
	now           time.Duration
	onTick        []func(now time.Duration)
	nextTick      time.Duration
	trimmed       time.Duration
	stopped       bool
}

// epoch is what [Loop.Now] counts from.
var epoch = time.Now()

// Now is the time since the process started, on the monotonic clock.
func Now() time.Duration { return time.Since(epoch) }

// Time turns what Now returned into a time of day.
func Time(now time.Duration) time.Time { return epoch.Add(now) }

// New starts a loop.
func New(id int) (*Loop, error) {
	p, err := newPoller()
	if err != nil {
		return nil, fmt.Errorf("starting event loop %d: %w", id, err)
	}
	l := &Loop{id: id, poll: p, done: make(chan struct{}), buf: make([]byte, BufferSize)}
	l.tick.Store(int64(idleTick))
	go l.run()
	return l, nil
}

// ID is the loop's number in its group, from 0.
func (l *Loop) ID() int { return l.id }

// Pending is the number of bytes in the pending chunks of all connections of
// the loop. Any goroutine may ask.
func (l *Loop) Pending() int64 { return l.pending.Load() }

// PartialRecords is the number of bytes that the TLS connections of the loop hold of
// records that have not come whole, or were not read to their end. Any goroutine may ask.
func (l *Loop) PartialRecords() int64 { return l.parts.Load() }

// Batched is how many reads and writes were made together with others in one call. Any
// goroutine may ask.
func (l *Loop) Batched() int64 { return l.batched.Load() }

// Now is the time at which the current round of events began.
func (l *Loop) Now() time.Duration { return l.now }

// Buffer is the loop's read buffer. It is valid until the handler returns, and
// there is only one: what a handler calls must not use it at the same time.
func (l *Loop) Buffer() []byte { return l.buf }

// OnTick has f called about every period; the shortest period that anybody
// asked for holds for all. It must be called on the loop's goroutine.
func (l *Loop) OnTick(f func(now time.Duration)) { l.onTick = append(l.onTick, f) }

// SetTick sets how often the functions given to OnTick are called; never less
// often than once a second. Any goroutine may call it.
func (l *Loop) SetTick(period time.Duration) {
	l.tick.Store(int64(max(min(period, idleTick), time.Millisecond)))
	l.Post(func() { l.nextTick = 0 })
}

// Post has f run on the loop's goroutine, after what was posted before. Any
// goroutine may call it. What is posted to a stopped loop is dropped.
func (l *Loop) Post(f func()) {
	l.mu.Lock()
	first := len(l.inbox) == 0
	l.inbox = append(l.inbox, f)
	l.mu.Unlock()
	if first {
		l.poll.wake()
	}
}

// Call runs f on the loop's goroutine and waits for it; false if the loop has
// stopped. It must not be called on a loop.
func (l *Loop) Call(f func()) bool {
	ran := make(chan struct{})
	l.Post(func() { f(); close(ran) })
	select {
	case <-ran:
		return true
	case <-l.done:
		return false
	}
}

// Stop ends the loop and closes every connection left on it, without a word to
// their handlers. It returns when the goroutine has ended.
func (l *Loop) Stop() {
	l.Post(func() { l.stopped = true })
	<-l.done
}

// Add puts a connection on the loop: one fresh from Init, or one that its loop
// let go with Remove. It must be called on the loop's goroutine. Whatever can
// be read already is reported.
func (l *Loop) Add(c *Conn) error {
	l.gen++
	c.gen = l.gen
	early := c.flags&flagEarly != 0
	c.flags &= flagHangUp | flagBroken
	for int(c.fd) >= len(l.conns) {
		l.conns = append(l.conns, nil)
	}
	if err := l.poll.add(int(c.fd), c.gen); err != nil {
		return err
	}
	l.conns[c.fd] = c
	l.live++
	c.loop.Store(l)
	if early {
		l.takeOverAhead(c)
	}
	if c.tls != nil {
		c.tls.arrive(c, l)
	}
	return nil
}

// Remove takes a connection with nothing pending off the loop, for another to
// add it. It must be called on the loop's goroutine.
func (l *Loop) Remove(c *Conn) error {
	c.settle()
	l.forget(c)
	if c.tls != nil {
		c.tls.forget(l)
	}
	if err := l.poll.remove(int(c.fd)); err != nil {
		return fmt.Errorf("taking a connection off its loop: %w", err)
	}
	if i := slices.Index(l.again, c); i >= 0 {
		l.again[i] = nil // another loop's soon
	}
	c.flags &^= flagQueued
	l.handOverAhead(c)
	c.loop.Store(nil)
	return nil
}

// forget drops the entry of a connection that closes or leaves.
func (l *Loop) forget(c *Conn) {
	if l.conns[c.fd] == c {
		l.conns[c.fd] = nil
		l.live--
	}
	c.flags &^= flagReadable
}

// Each calls f with the handler of every connection. It must be called on the
// loop's goroutine; f may close connections but not add any.
func (l *Loop) Each(f func(Handler)) {
	for _, c := range l.conns {
		if c != nil {
			f(c.h)
		}
	}
}

func (l *Loop) run() {
	defer close(l.done)
	for !l.stopped {
		n, err := l.poll.wait(l.timeout())
		if err != nil {
			// The set itself is broken: nothing can be served any more.
			panic(fmt.Sprintf("bug: event loop %d: %v", l.id, err))
		}
		l.now = Now()
		l.dispatch(n)
		l.goOn()
		l.runTicks()
	}
	for _, c := range l.conns {
		if c != nil {
			c.Close()
		}
	}
	l.batch.close()
	l.poll.close()
}

// timeout is how long to wait for events, in milliseconds.
func (l *Loop) timeout() int {
	if len(l.again) > 0 {
		return 0
	}
	left := l.nextTick - Now()
	return max(int((left+time.Millisecond-1)/time.Millisecond), 0)
}

// dispatch hands out n events. Connections whose peer is gone come first: a
// server that died while idle is thus taken out of its pool before a client of
// the same round could be given it.
func (l *Loop) dispatch(n int) {
	posted := false
	gone := 0
	for i := range n {
		fd, gen, ready := l.poll.event(i)
		if gen == 0 {
			posted = true
			continue
		}
		if ready&pollHangUp != 0 {
			gone++
			l.event(fd, gen, ready)
		}
	}
	if n-gone < minBatch || !l.batch.ready() {
		l.handOut(0, n)
	} else {
		l.batch.open = true
		for i := 0; i < n; i += maxBatch {
			to := min(i+maxBatch, n)
			l.readAll(i, to)
			l.handOut(i, to)
			l.keepUnread()
		}
		l.batch.open = false
		l.writeAll()
	}
	if posted {
		l.poll.woken()
		l.runInbox()
	}
}

// handOut hands out those of the events from one to another index that are not of a
// connection whose peer is gone.
func (l *Loop) handOut(from, to int) {
	for i := from; i < to; i++ {
		if fd, gen, ready := l.poll.event(i); gen != 0 && ready&pollHangUp == 0 {
			l.event(fd, gen, ready)
		}
	}
}

func (l *Loop) event(fd int, gen, ready uint32) {
	if fd >= len(l.conns) || l.conns[fd] == nil || l.conns[fd].gen != gen {
		return // closed or handed over earlier in this round
	}
	c := l.conns[fd]
	if ready&pollHangUp != 0 {
		c.flags |= flagHangUp
	}
	if ready&pollBroken != 0 {
		c.flags |= flagBroken
	}
	if ready&(pollReadable|pollHangUp) != 0 {
		c.flags |= flagReadable
		if c.ahead == aheadElsewhere {
			c.flags |= flagMore
		}
		c.h.Readable()
	}
	if ready&pollWritable != 0 && c.out != nil && l.conns[fd] == c {
		l.flush(c)
	}
}

func (l *Loop) flush(c *Conn) {
	if err := c.flush(); err != nil {
		c.h.Broken(err)
		return
	}
	if c.out == nil {
		c.h.Drained()
	}
}

// goOn continues with connections that had more to read than one turn's worth,
// one turn each, so that none starves the others.
func (l *Loop) goOn() {
	for i, n := 0, len(l.again); i < n; i++ {
		if c := l.again[i]; c != nil {
			c.flags &^= flagQueued
			if c.fd >= 0 && c.flags&flagReadable != 0 {
				c.h.Readable()
			}
		}
		if i == n-1 {
			l.again = append(l.again[:0], l.again[n:]...)
		}
	}
}

func (l *Loop) runInbox() {
	l.mu.Lock()
	posted := l.inbox
	l.inbox = nil
	l.mu.Unlock()
	for _, f := range posted {
		f()
	}
}

func (l *Loop) runTicks() {
	if l.now < l.nextTick {
		return
	}
	l.nextTick = l.now + time.Duration(l.tick.Load())
	for _, f := range l.onTick {
		f(l.now)
	}
	if l.now-l.trimmed >= idleTick {
		l.trimmed = l.now
		l.chunks.trim()
		l.trimConns()
	}
}

// trimConns rebuilds the table of connections at the size of what lives, when
// it is mostly empty at its end.
func (l *Loop) trimConns() {
	top := len(l.conns)
	for top > 0 && l.conns[top-1] == nil {
		top--
	}
	if len(l.conns) > 4*top+1024 {
		l.conns = append(make([]*Conn, 0, top), l.conns[:top]...)
	}
	if cap(l.again) > 4*len(l.again)+1024 {
		l.again = append([]*Conn(nil), l.again...)
	}
}
