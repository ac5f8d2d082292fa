package main

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

// dedup keeps floods out of the log: of lines with the same level and message, the first
// ones of a window are written, and at its end how many were not. It implements
// [slog.Handler].
type dedup struct {
	slog.Handler
	*window
}

// window is what all handlers that were derived from one share.
type window struct {
	length    time.Duration // constant
	threshold int           // lines of a kind that are written in a window; constant
	after     func(time.Duration, func())

	mu    sync.Mutex
	kinds map[kindOfLine]*flood // of the windows that are open; guarded by mu
}

// kindOfLine is what lines have in common that count as the same. Messages are constants
// of the program, so there are not many.
type kindOfLine struct {
	level   slog.Level
	message string
}

type flood struct{ seen, kept int }

// newDedup wraps a handler. Without a window or a threshold every line is written.
func newDedup(h slog.Handler, length time.Duration, threshold int) slog.Handler {
	if length <= 0 || threshold <= 0 {
		return h
	}
	return dedup{h, &window{
		length: length, threshold: threshold, kinds: map[kindOfLine]*flood{},
		after: func(d time.Duration, f func()) { time.AfterFunc(d, f) },
	}}
}

// Handle implements [slog.Handler].
func (d dedup) Handle(ctx context.Context, r slog.Record) error {
	kind := kindOfLine{r.Level, r.Message}
	d.mu.Lock()
	f := d.kinds[kind]
	if f == nil {
		f = &flood{}
		d.kinds[kind] = f
		d.after(d.length, func() { d.end(kind) })
	}
	f.seen++
	write := f.seen <= d.threshold
	if write {
		f.kept++
	}
	d.mu.Unlock()
	if !write {
		return nil
	}
	return d.Handler.Handle(ctx, r)
}

// end closes the window of a kind of line and says how many were left out.
func (d dedup) end(kind kindOfLine) {
	d.mu.Lock()
	f := d.kinds[kind]
	delete(d.kinds, kind)
	d.mu.Unlock()
	if f.seen == f.kept {
		return
	}
	r := slog.NewRecord(time.Now(), kind.level, kind.message, 0)
	r.AddAttrs(slog.Int("left_out", f.seen-f.kept), slog.String("within", d.length.String()))
	_ = d.Handler.Handle(context.Background(), r) // there is nowhere to say that it cannot be written
}

// WithAttrs implements [slog.Handler].
func (d dedup) WithAttrs(attrs []slog.Attr) slog.Handler {
	return dedup{d.Handler.WithAttrs(attrs), d.window}
}

// WithGroup implements [slog.Handler].
func (d dedup) WithGroup(name string) slog.Handler {
	return dedup{d.Handler.WithGroup(name), d.window}
}
