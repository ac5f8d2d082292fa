// Package pool decides who gets which server when.
//
// A [Registry] holds one [Pool] for each (user, database, host). A pool keeps
// idle servers, last used first, and clients that wait, first come first
// served; it dials when somebody waits and there is room, keeps its minimum,
// and lets go of what is idle for too long or too old. A [Waiter] is a client's
// place in the queue.
//
// The pools of one user at one database are a [Cluster], which chooses one of them
// for each request: by the roles of the hosts, which may have to be found out, by
// who is banned or cannot be reached, and by how far replicas are behind.
//
// What is said on a connection is not its business; packages backend and
// frontend see to that. No I/O is done under a lock.
//
// The caveat that bites: an idle server lives on a loop. A client on another
// loop gets it only after that loop has let go of it, so [Pool.Acquire] prefers
// servers of the client's own loop, and says "wait" for the others.
//
// Lock order: Registry.mu, then Pool.mu.
package pool
