// Package admin is the console: the database that operators connect to with psql to
// see what pgebb does and to tell it what to do.
//
// A [Console] serves one connection after its login for each call of
// [Console.Serve], in one of two dialects: that of PgDog, and, at the database that is
// called pgbouncer, that of PgBouncer. What it knows are [Command] entries: names,
// columns, and a function that makes the rows. What they show and do goes through the
// small interfaces of [Sources], which say nothing of pools or clients but what an
// operator sees.
//
// The caveat that bites: rows are gathered from the event loops at the time of asking,
// one loop after the other, so they are not one instant of the whole.
package admin

//go:generate go run ../internal/gendoc ../docs
