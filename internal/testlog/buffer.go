// Package testlog keeps what tests want to know of a log.
//
// A [Buffer] is where the log goes. It owns nothing else.
//
// The caveat that bites: it grows with what is logged, and forgets nothing.
package testlog

import (
	"bytes"
	"strings"
	"sync"
)

// Buffer takes what is logged. It is safe for concurrent use; the zero value is empty.
type Buffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

// Write implements [io.Writer] and never fails.
func (b *Buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

// String is all that was logged so far.
func (b *Buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

// Count is how often a text was logged so far.
func (b *Buffer) Count(text string) int { return strings.Count(b.String(), text) }
