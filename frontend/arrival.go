package frontend

import (
	"errors"
	"net"
	"net/netip"
	"os"
	"time"

	"github.com/pgebb/pgebb/config"
	"github.com/pgebb/pgebb/internal/loop"
)

// arrival is a connection whose login is under way on a loop. The login is written as if it
// waited for its client, and is a coroutine of the loop: where it has to wait it returns to
// the loop, which goes on with it when there is something to read. So a login costs no more than
// its messages; a goroutine that is parked and woken for each of them costs twice as much. What
// takes long is not done on a loop: the login leaves it for a goroutine of its own.
//
// It is the [net.Conn] of that login. Everything belongs to the loop.
type arrival struct {
	loop.Conn
	f        *Frontend
	peer     net.Addr
	accepted time.Duration // in loop.Now

	in       []byte // what was read, and the login has not used
	err      error  // behind it
	deadline *time.Timer
	login    *coroutine         // nil before it has begun, and after its end
	busy     bool               // it waits for something else than its client
	late     bool               // it has taken too long
	over     bool               // it has ended, but its client has not taken yet what it was told
	becomes  func(l *loop.Loop) // makes it a client; nil unless the login has succeeded here
	then     func()             // takes it off the loop; nil unless the login goes on elsewhere
}

// loginPiece is how much is read of a client at once. What comes behind its login is left to
// the system, where it waits for the client's turn.
const loginPiece = 1 << 10

// welcome puts a socket that was accepted on the loop of on, if connections go there now, or on another.
func (f *Frontend) welcome(fd int, from netip.AddrPort, on *loop.Loop) {
	a := &arrival{f: f, peer: addressOf(from), accepted: loop.Now()}
	a.Take(fd, a)
	if l := f.loops.Pick(); l != on {
		l.Post(func() { a.begin(l) })
		return
	}
	a.begin(on)
}

func addressOf(from netip.AddrPort) net.Addr {
	if !from.IsValid() {
		return &net.UnixAddr{Net: "unix"}
	}
	return net.TCPAddrFromAddrPort(from)
}

func (a *arrival) begin(l *loop.Loop) {
	if a.f.closed.Load() {
		a.Conn.Close()
		return
	}
	if err := l.Add(&a.Conn); err != nil {
		a.Conn.Close()
		a.f.log.Warn("client could not be put on a loop", "error", err)
		return
	}
	a.f.arriving.Add(1)
	if t := a.f.cfg.Load().General.ClientLoginTimeout; t != config.Off {
		a.deadline = time.AfterFunc(t, func() { l.Post(a.expire) })
	}
	a.login = a.f.coroutines[l.ID()].take(a.logIn)
}

// expire is called when the login has taken too long.
func (a *arrival) expire() {
	if a.over {
		a.finish()
		return
	}
	a.err, a.in, a.late = os.ErrDeadlineExceeded, nil, true
	a.goOn()
}

// Readable implements [loop.Handler].
func (a *arrival) Readable() {
	if a.busy || a.over || len(a.in) > 0 {
		return // it is read when the login wants more
	}
	buf := a.Loop().Buffer()[:loginPiece]
	n, more, err := a.Conn.Read(buf)
	if n == 0 && err == nil {
		return
	}
	a.in = append([]byte(nil), buf[:n]...)
	a.err = err
	if more {
		a.Conn.Resume()
	}
	a.goOn()
}

// Drained implements [loop.Handler].
func (a *arrival) Drained() {
	if a.over {
		a.finish()
	}
}

// Broken implements [loop.Handler].
func (a *arrival) Broken(err error) {
	if a.over {
		a.then = nil
		a.finish()
		return
	}
	a.err = err
	a.goOn()
}

// goOn goes on with the login, up to where it waits again or has ended.
func (a *arrival) goOn() {
	if a.login != nil && a.login.goOn() {
		a.f.coroutines[a.Loop().ID()].give(a.login)
		a.login = nil
		a.end()
	}
}

// end is called when the login has ended. A client takes over what is pending; before anything
// else the peer must have taken it.
func (a *arrival) end() {
	if a.becomes != nil {
		a.forget()
		a.becomes(a.Loop())
		return
	}
	a.over = true
	if a.Pending() == 0 {
		a.finish()
	}
}

// finish closes the connection, or has a goroutine go on with it.
func (a *arrival) finish() {
	then := a.then
	if a.Pending() > 0 {
		then = nil // there is no time left
	}
	a.forget()
	if then == nil {
		a.Conn.Close()
		return
	}
	then()
}

// forget is called when it is a login on a loop no longer.
func (a *arrival) forget() {
	a.over = false
	if a.deadline != nil {
		a.deadline.Stop()
	}
	a.f.arriving.Add(-1)
}

// abandon ends the login because pgebb does.
func (a *arrival) abandon() {
	switch {
	case a.login != nil:
		a.err = net.ErrClosed
		a.login.stop()
		a.login = nil
	case !a.over:
		return
	}
	a.forget()
	a.Conn.Close()
}

// logIn is what the coroutine does.
func (a *arrival) logIn() {
	f := a.f
	r := &reception{conn: a, encryption: f.encryption.Load()}
	st, err := r.readStartup()
	switch {
	case errors.Is(err, errElsewhere):
		a.leave(func(conn net.Conn) { f.serve(conn, a.accepted) })
	case err != nil:
		f.refuse(a, st, err)
	case !f.isQuick(a, st):
		a.leave(func(conn net.Conn) { f.serveFrom(conn, st, a.accepted) })
	default:
		f.enter(a, st, a.accepted)
	}
}

// isQuick reports whether nothing in the login of a client takes long but to wait for it.
func (f *Frontend) isQuick(a *arrival, st *startup) bool {
	return st.Cancel == nil && !f.cfg.Load().IsConsole(st.Database) && f.auth.isQuick(a, st)
}

// errElsewhere says that the login must go on in a goroutine.
var errElsewhere = errors.New("it must be gone on with in a goroutine")

// elsewhere has the login leave its loop; what it has read last is to be read again there.
func (a *arrival) elsewhere(again []byte) error {
	a.in = append(append([]byte(nil), again...), a.in...)
	return errElsewhere
}

// leave has a goroutine go on when the login has returned.
func (a *arrival) leave(goOn func(conn net.Conn)) {
	a.then = func() {
		l := a.Loop()
		conn, unread, err := l.Release(&a.Conn, a.peer)
		if err != nil {
			a.f.log.Warn("client could not be taken off its loop", "error", err)
			return
		}
		if unread = append(a.in, unread...); len(unread) > 0 {
			conn = &prefixed{conn, unread}
		}
		go goOn(conn)
	}
}

// await waits for what takes long, which is done in a goroutine that ends with it. What it was good
// for is undone if the login does not wait for it any more.
func (a *arrival) await(slow func() (undo func(), err error)) (undo func(), err error) {
	if !a.f.begins() {
		return nil, net.ErrClosed
	}
	l := a.Loop()
	done, left := false, false
	go func() {
		defer a.f.logins.Done()
		u, failed := slow()
		l.Post(func() {
			if left && u != nil {
				u()
			}
			if left {
				return
			}
			undo, err, done = u, failed, true
			a.goOn()
		})
	}()
	a.busy = true
	defer func() { a.busy = false }()
	for !done {
		if a.late {
			left = true
			return nil, os.ErrDeadlineExceeded
		}
		if !a.login.wait() {
			left = true
			return nil, net.ErrClosed
		}
	}
	a.Conn.Resume()
	return undo, err
}

// Read implements [net.Conn] for the login.
func (a *arrival) Read(p []byte) (int, error) {
	for len(a.in) == 0 {
		if a.err != nil {
			return 0, a.err
		}
		a.Conn.Resume()
		if !a.login.wait() {
			return 0, net.ErrClosed
		}
	}
	n := copy(p, a.in)
	if a.in = a.in[n:]; len(a.in) == 0 {
		a.in = nil
	}
	return n, nil
}

// Write implements [net.Conn] for the login. It never waits; a login has never much to say
// before its client answers.
func (a *arrival) Write(p []byte) (int, error) {
	if err := a.Conn.Write(p); err != nil {
		return 0, err
	}
	return len(p), nil
}

// Close implements [net.Conn]. The connection is closed when the login has ended.
func (a *arrival) Close() error { return nil }

// LocalAddr implements [net.Conn]. Nobody asks.
func (a *arrival) LocalAddr() net.Addr { return nil }

// RemoteAddr implements [net.Conn].
func (a *arrival) RemoteAddr() net.Addr { return a.peer }

// SetDeadline and the others implement [net.Conn]; a login has one deadline for all of it.
func (a *arrival) SetDeadline(time.Time) error      { return nil }
func (a *arrival) SetReadDeadline(time.Time) error  { return nil }
func (a *arrival) SetWriteDeadline(time.Time) error { return nil }
