// Package loop is the reactor: event loops that own non-blocking connections.
//
// A [Loop] is one goroutine with its own readiness set and one read buffer of
// [BufferSize] bytes. A [Conn] is a socket that lives on exactly one loop, and
// a [Handler] is what a connection means to somebody: a client's session, a
// server. A [Group] is the loops of the process; it fills one before it uses
// the next, because a second loop is only worth its wake-ups when the first
// one is saturated. A [TLS] connection lives on a loop like any other, without buffers
// of its own.
//
// It knows nothing of the protocol, of pools or of whose bytes these are.
//
// The caveat that bites: except where a method says otherwise, a Conn may be
// touched by the goroutine of its loop only, and what [Loop.Buffer] returns is
// good until the handler returns. Readiness is edge-triggered: whoever stops
// reading before the socket is empty must call [Conn.Resume] later.
package loop
