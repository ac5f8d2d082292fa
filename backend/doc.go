// Package backend is one connection to Postgres, called a server: how it is
// dialled and logged in to, what it has been sent and still owes, its
// transaction status and run-time parameters, how it is brought back to a
// clean state, and how its query is cancelled.
//
// [Connect] logs in with plain blocking calls; the [Session] it returns becomes
// a [Server] on an event loop. A [Client] is whoever holds the server, an
// [Owner] is the pool it belongs to. [Set] is an interned set of run-time
// parameters, so that "same settings?" is one comparison.
//
// Who gets which server when is none of its business; package pool decides.
//
// The caveat that bites: a Server belongs to the goroutine of its loop, and a
// span given to [Client.FromServer] is valid during the call only.
package backend
