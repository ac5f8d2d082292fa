package loop

import (
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/pgebb/pgebb/internal/memory"
)

const (
	// minBatch is from how many events in a round on calls are made together. Making one
	// call through the ring costs more than making it.
	minBatch = 2
	// maxBatch is how many connections are read, and how many written, in one call.
	maxBatch = 32
	// aheadSize is how many bytes are read of each connection. What has more to say is
	// read on by its handler.
	aheadSize = 2 << 10
	// putOffSize is the most that is written to a connection together with others'.
	putOffSize = 4 << 10
)

// aheadElsewhere is the [Conn.ahead] of a connection whose bytes are in [Loop.early].
const aheadElsewhere = 255

// batch makes the system calls of one round of events together, where a ring can be had: all
// connections that have something to read are read in one call before their handlers are
// called, and what these write is written in one call after that. A transaction takes two
// reads and two writes, and the way into the system and back is a good part of what these cost.
//
// Handlers do not notice, but for one thing: an error of a write that was put off comes
// with [Handler.Broken] and not from [Conn.Write]. [Conn.Pending] sends first what was put off.
//
// The zero value has no ring yet. Only the loop's goroutine touches it.
type batch struct {
	ring    *ring // nil before the first round that needs it, or if there is none to be had
	tried   bool
	open    bool // writes are put off
	results []int32

	slots  []byte // aheadSize bytes for each connection read ahead
	reads  [maxBatch]readAhead
	n      int // reads in use
	writes []putOff
	bytes  []byte // of the writes
}

// readAhead is what was read of a connection before its handler asked: b[off:].
type readAhead struct {
	c   *Conn // nil once all of it was taken
	b   []byte
	off int
}

// putOff is a write that is to be made at the end of the round.
type putOff struct {
	c *Conn // nil if the connection was closed meanwhile
	n int   // bytes, which stand one write behind the other in batch.bytes
}

// held is what the batch takes in bytes.
func (b *batch) held() int64 {
	n := memory.SizeOf(cap(b.slots)) + memory.SizeOf(cap(b.bytes)) + memory.SizeOf(cap(b.writes)*16) + memory.SizeOf(cap(b.results)*4)
	if b.ring != nil {
		n += b.ring.bytes()
	}
	return n
}

// ready reports whether there is a ring, and makes one at first.
func (b *batch) ready() bool {
	if !b.tried {
		b.tried = true
		r, err := newRing(maxBatch)
		if err != nil {
			return false // Batching tells why
		}
		b.ring = r
		b.results = make([]int32, maxBatch)
		b.slots = make([]byte, maxBatch*aheadSize)
		b.writes = make([]putOff, 0, maxBatch)
		b.bytes = make([]byte, 0, maxBatch*aheadSize)
	}
	return b.ring != nil
}

// Batching tells why system calls cannot be made together on this machine; nil if they can.
func Batching() error {
	r, err := newRing(minBatch)
	if err == nil {
		r.close()
	}
	return err
}

// MakeSingleCalls has the loops make each system call by itself. It is to be called before
// there are connections.
func (g *Group) MakeSingleCalls() {
	for _, l := range g.loops {
		l.Call(l.MakeSingleCalls)
	}
}

// MakeSingleCalls must be called on the loop's goroutine, before there are connections.
func (l *Loop) MakeSingleCalls() { l.batch.tried = true }

func (b *batch) close() {
	if b.ring != nil {
		b.ring.close()
		b.ring = nil
	}
}

// readAll reads of the connections of some events, at most maxBatch, what there is to read.
func (l *Loop) readAll(from, to int) {
	b := &l.batch
	for i := from; i < to; i++ {
		fd, gen, ready := l.poll.event(i)
		if gen == 0 || ready&(pollReadable|pollHangUp) != pollReadable || fd >= len(l.conns) {
			continue
		}
		c := l.conns[fd]
		// What can be read already is what its handler does not want now.
		if c == nil || c.gen != gen || c.flags&(flagReadable|flagBulk) != 0 || c.ahead != 0 {
			continue
		}
		slot := b.slots[b.n*aheadSize : (b.n+1)*aheadSize]
		b.reads[b.n] = readAhead{c: c, b: slot}
		b.ring.recv(fd, slot, b.n)
		b.n++
	}
	if b.n == 0 {
		return
	}
	l.batched.Add(int64(b.n))
	b.ring.run(b.results[:b.n])
	for i, got := range b.results[:b.n] {
		r := &b.reads[i]
		if got <= 0 {
			r.c = nil // its handler finds out itself
			continue
		}
		r.b = r.b[:got]
		r.c.ahead = uint8(i + 1)
		r.c.flags |= flagReadable
		if got == aheadSize {
			r.c.flags |= flagBulk | flagMore
		}
	}
}

// takeAhead is the [Conn.pull] of what was read ahead.
func (l *Loop) takeAhead(c *Conn, p []byte) (n int, dry bool) {
	if c.ahead == aheadElsewhere {
		ch := l.early[c]
		n = copy(p, ch.rest())
		ch.off += n
		if ch.off < len(ch.b) {
			return n, false
		}
		l.dropEarly(c)
	} else {
		r := &l.batch.reads[c.ahead-1]
		n = copy(p, r.b[r.off:])
		r.off += n
		if r.off < len(r.b) {
			return n, false
		}
		r.c = nil
		c.ahead = 0
	}
	dry = c.flags&(flagMore|flagHangUp) == 0
	c.flags &^= flagMore
	return n, dry
}

// keepUnread keeps what was read ahead in this round and that handlers did not take.
func (l *Loop) keepUnread() {
	b := &l.batch
	for i := range b.reads[:b.n] {
		if r := &b.reads[i]; r.c != nil {
			l.keepEarly(r.c, r.b[r.off:])
			r.c = nil
		}
	}
	b.n = 0
}

// keepEarly keeps a copy of p until the handler of c reads it.
func (l *Loop) keepEarly(c *Conn, p []byte) {
	ch := l.chunks.get(len(p))
	ch.b = append(ch.b, p...)
	if l.early == nil {
		l.early = map[*Conn]*chunk{}
	}
	l.early[c] = ch
	c.ahead = aheadElsewhere
	l.addPending(int64(cap(ch.b)))
	l.pendingChunks++
}

func (l *Loop) dropEarly(c *Conn) {
	ch := l.early[c]
	delete(l.early, c)
	if len(l.early) == 0 {
		l.early = nil // maps never shrink
	}
	c.ahead = 0
	l.addPending(-int64(cap(ch.b)))
	l.pendingChunks--
	l.chunks.put(ch)
}

// ahead is what was read ahead of a connection, valid until the next round.
func (l *Loop) ahead(c *Conn) []byte {
	switch c.ahead {
	case 0:
		return nil
	case aheadElsewhere:
		return l.early[c].rest()
	}
	r := &l.batch.reads[c.ahead-1]
	return r.b[r.off:]
}

// handOverAhead has a connection that leaves the loop take along what was read ahead, in the place
// of what is pending, which is nothing then; takeOverAhead is for the loop that it comes to.
func (l *Loop) handOverAhead(c *Conn) {
	if c.ahead == 0 {
		return
	}
	out := &chunk{b: append([]byte(nil), l.ahead(c)...)}
	l.forgetAhead(c)
	c.out = out
	c.flags |= flagEarly
}

func (l *Loop) takeOverAhead(c *Conn) {
	p := c.out.rest()
	c.out = nil
	l.keepEarly(c, p)
	c.flags |= flagReadable | flagMore
	c.Resume()
}

// forgetAhead drops what was read ahead of a connection that is closed.
func (l *Loop) forgetAhead(c *Conn) {
	switch c.ahead {
	case 0:
	case aheadElsewhere:
		l.dropEarly(c)
	default:
		l.batch.reads[c.ahead-1].c = nil
		c.ahead = 0
	}
}

// putOff keeps a write for the end of the round.
func (l *Loop) putOff(c *Conn, p []byte) {
	b := &l.batch
	if last := len(b.writes) - 1; c.flags&flagPutOff != 0 && last >= 0 && b.writes[last].c == c && len(b.bytes)+len(p) <= cap(b.bytes) {
		b.writes[last].n += len(p)
		b.bytes = append(b.bytes, p...)
		return
	}
	if c.flags&flagPutOff != 0 || len(b.writes) == maxBatch || len(b.bytes)+len(p) > cap(b.bytes) {
		l.writeAll()
		if c.out != nil {
			c.keep(p)
			return
		}
	}
	c.flags |= flagPutOff
	b.writes = append(b.writes, putOff{c, len(p)})
	b.bytes = append(b.bytes, p...)
}

// writeAll makes the writes that were put off. It calls no handler: who cannot be
// written to is told so later.
func (l *Loop) writeAll() {
	b := &l.batch
	if len(b.writes) == 0 {
		return
	}
	rest := b.bytes
	for i, w := range b.writes {
		b.ring.send(int(w.c.fd), rest[:w.n], i)
		rest = rest[w.n:]
	}
	l.batched.Add(int64(len(b.writes)))
	b.ring.run(b.results[:len(b.writes)])
	rest = b.bytes
	for i, w := range b.writes {
		w.c.flags &^= flagPutOff
		l.written(w.c, rest[:w.n], b.results[i])
		rest = rest[w.n:]
		b.writes[i].c = nil
	}
	b.writes, b.bytes = b.writes[:0], b.bytes[:0]
}

// written deals with the result of a write of p, as [Conn.send] does.
func (l *Loop) written(c *Conn, p []byte, result int32) {
	n, err := int(max(result, 0)), error(nil)
	switch {
	case result == notRun:
		n, err = send(int(c.fd), p)
	case result < 0:
		err = unix.Errno(-result)
	}
	switch {
	case err != nil && err != unix.EAGAIN && err != unix.EINTR:
		err = fmt.Errorf("writing: %w", err)
	case n == len(p):
		return
	default:
		c.keep(p[n:])
		err = c.arm(true)
	}
	if err != nil {
		l.Post(func() {
			if c.fd >= 0 && c.loop.Load() == l {
				c.h.Broken(err)
			}
		})
	}
}

// settle makes what was put off for a connection happen.
func (c *Conn) settle() {
	if c.flags&flagPutOff != 0 {
		c.loop.Load().writeAll()
	}
}
