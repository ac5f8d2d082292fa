// Package frontend faces clients: it accepts them, logs them in, relays between
// each and the server it is given, and says to it what pgebb itself has to say.
//
// A [Frontend] owns the listeners and everything that is common to clients. An
// arrival is a connection whose login is under way. A
// [Client] is one connection after its login: an object on an event loop, without a
// goroutine and, between requests, without a buffer. errors.go lists every error
// that a client can get from pgebb itself.
//
// Which server a client gets is for package pool to say; what a server still owes
// is counted by package backend.
//
// The caveat that bites: answers arrive in [Client.FromServer] in the middle of a
// scan of the server's input, so nothing there may take the server away from the
// client; that is put off with [Client.later].
package frontend
