// Package memory keeps the process no larger than what it holds.
//
// A [Reclaimer] gives memory that the Go runtime holds on to back to the operating
// system once a load has eased: after a burst an idle Go process keeps its heap for
// minutes, because the goal of its scavenger moves only at the next collection. Pages of the
// program's file that only the load needed go, too.
// [RSS] and [Read] say what the process takes.
//
// It knows neither protocol nor SQL.
//
// The caveat that bites: a trim is a full collection. It must not run under load,
// which is why the reclaimer waits for the load to ease.
package memory
