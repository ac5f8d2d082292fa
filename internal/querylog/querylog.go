// Package querylog writes the texts of clients' statements to a file, to standard output,
// or to both (query_log, query_log_stdout).
//
// It owns the file, what waits to be written, and one goroutine, which formats and
// writes. What a statement is and who has sent it is told to it by package frontend: see
// [Log] and [Line]. Constants of a text that says anything of passwords, or is not known
// whole, are never written.
//
// The caveat that bites: [Log.Add] never waits. What does not fit into the buffer is
// dropped and counted; the log says how much that was.
package querylog

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/pgebb/pgebb/internal/memory"
)

const (
	// MaxText is how many bytes of a text are written.
	MaxText = 8 << 10

	// maxName is how many bytes of any name are. Names of users and databases are not
	// longer in Postgres, but those in files can be.
	maxName = 255

	// chunkSize is what lines wait in, in bytes; a line fits into one.
	chunkSize = 64 << 10

	// maxChunks is how many chunks there may be, those that are being written included.
	maxChunks = 16

	// Limit is the most that all that waits takes in bytes, with what is being formatted.
	Limit = maxChunks*chunkSize + maxOut

	// gathering is for how long lines are gathered before they are written: the writer
	// would otherwise be woken up for each.
	gathering = 50 * time.Millisecond

	// patience is how long Close waits for who does not take what is written.
	patience = time.Second
)

// Kind is what a client has done with a text.
type Kind uint8

const (
	Query   Kind = iota // of the simple protocol
	Parse               // of the extended protocol
	Execute             // of a text that was parsed before
)

var kinds = [...]string{Query: "query", Parse: "parse", Execute: "execute"}

// Line is what is to be written. Its slices are not kept.
type Line struct {
	Kind           Kind
	Client         uint64
	User, Database string
	Host           string // of the client; "unix" for one at a Unix socket
	Port           int
	Name           []byte // of the prepared statement; empty if it has none
	Text           []byte // what is known of it
	Length         int    // of the whole text in bytes; 0 if it is not known
}

// Log is a query log. It is safe for concurrent use.
type Log struct {
	log     *slog.Logger  // constant; where it is said that nothing can be written
	stdout  io.Writer     // constant
	on      atomic.Bool   // lines are wanted
	dropped atomic.Uint64 // lines that were not written, ever
	out     atomic.Int64  // bytes of the writer's buffer
	wake    chan struct{} // there is something to write; one place
	hurry   chan struct{} // it is not to be gathered for long; one place
	closing chan struct{} // closed by Close
	ended   chan struct{} // closed by the goroutine when it ends

	mu      sync.Mutex
	current []byte   // that lines are added to; nil if there is none; guarded by mu
	queue   []item   // what is to be done before that, in order; guarded by mu
	spare   [][]byte // empty chunks; guarded by mu
	chunks  int      // that there are, with those that are being written; guarded by mu
	lines   int64    // that wait, with those; guarded by mu
	untold  uint64   // lines that were dropped, which the log has not said; guarded by mu
	started bool     // the goroutine is; guarded by mu
	closed  bool     // guarded by mu
}

// item is one thing for the writer to do: write a chunk, or go on somewhere else.
type item struct {
	chunk []byte
	to    *sink
}

// New makes a log that is off. It has no goroutine before it is turned on.
func New(stdout io.Writer, log *slog.Logger) *Log {
	return &Log{
		log: log, stdout: stdout, wake: make(chan struct{}, 1), hurry: make(chan struct{}, 1),
		closing: make(chan struct{}), ended: make(chan struct{}),
	}
}

// On reports whether lines are wanted.
func (l *Log) On() bool { return l.on.Load() }

// Configure says where lines go from now on: to a file unless path is empty, to standard
// output, to both or nowhere. The file is opened anew even if it is the same one, as who
// rotates logs wants it. Lines that wait still go where they would have gone. With an
// error all is as before.
func (l *Log) Configure(path string, stdout bool) error {
	to := &sink{path: path}
	if path != "" {
		// Without O_NONBLOCK, opening a pipe that nobody reads from would take for ever.
		f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND|os.O_CREATE|syscall.O_NONBLOCK, 0o600)
		if err != nil {
			return fmt.Errorf("query_log: %w", err)
		}
		to.file = f
	}
	if stdout {
		to.stdout = l.stdout
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed || !l.started && !to.used() {
		return to.close()
	}
	if l.current != nil {
		l.queue = append(l.queue, item{chunk: l.current})
		l.current = nil
	}
	l.queue = append(l.queue, item{to: to})
	l.on.Store(to.used())
	if !l.started {
		l.started = true
		go l.run() // ends with Close
	}
	nudge(l.wake)
	nudge(l.hurry)
	return nil
}

// Add has a line written.
func (l *Log) Add(line *Line) {
	now := time.Now()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return
	}
	room := cap(l.current) - len(l.current)
	if need := headSize + line.size(); room < need && !l.chunkLocked() {
		l.dropped.Add(1)
		l.untold++
		return
	}
	if len(l.current) == 0 {
		nudge(l.wake)
	}
	l.lines++
	l.current = line.encode(l.current, now)
}

// chunkLocked makes an empty chunk the current one; false if there may be no more.
func (l *Log) chunkLocked() bool {
	if n := len(l.spare); n == 0 && l.chunks == maxChunks {
		return false
	}
	if l.current != nil {
		l.queue = append(l.queue, item{chunk: l.current})
		if len(l.queue) >= maxChunks/2 {
			nudge(l.hurry)
		}
	}
	if n := len(l.spare); n > 0 {
		l.current = l.spare[n-1]
		l.spare = l.spare[:n-1]
		return true
	}
	l.chunks++
	l.current = make([]byte, 0, chunkSize)
	return true
}

// nudge fills a channel with one place.
func nudge(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// Dropped is how many lines were not written, because they did not fit into the buffer or
// because writing failed.
func (l *Log) Dropped() uint64 { return l.dropped.Load() }

// Close writes what waits, and returns when that is done; after a second in any case,
// since there may be nobody who takes it.
func (l *Log) Close() error {
	l.mu.Lock()
	wasClosed, started := l.closed, l.started
	l.closed = true
	l.on.Store(false)
	l.mu.Unlock()
	if wasClosed || !started {
		return nil
	}
	close(l.closing)
	select {
	case <-l.ended:
		return nil
	case <-time.After(patience):
		return errors.New("the query log does not take what is written to it")
	}
}

// Memory is what waits to be written.
func (l *Log) Memory() []memory.Holding {
	l.mu.Lock()
	defer l.mu.Unlock()
	return []memory.Holding{{
		Name: "query_log", Doc: "lines of the query log that are not written yet", Items: l.lines, Limit: Limit,
		Bytes: int64(l.chunks)*memory.SizeOf(chunkSize) + l.out.Load(),
	}}
}

// headSize is the size in bytes of what stands in front of the texts of a line: when, the
// client, the whole length, the port, the kind, and the lengths of the texts.
const headSize = 8 + 8 + 8 + 2 + 1 + 5*2

// texts are those of a line, as much of them as is written.
func (x *Line) texts() [5][]byte {
	t := [5][]byte{[]byte(x.User), []byte(x.Database), []byte(x.Host), x.Name, x.Text}
	for i := range t {
		most := maxName
		if i == len(t)-1 {
			most = MaxText
		}
		t[i] = t[i][:min(len(t[i]), most)]
	}
	return t
}

// size is the most that the texts of a line take in bytes.
func (x *Line) size() int {
	return min(len(x.User), maxName) + min(len(x.Database), maxName) + min(len(x.Host), maxName) + min(len(x.Name), maxName) + min(len(x.Text), MaxText)
}

// encode appends a line. What can be left to the writer is: the caller has more to do.
func (x *Line) encode(b []byte, now time.Time) []byte {
	b = binary.LittleEndian.AppendUint64(b, uint64(now.UnixNano()))
	b = binary.LittleEndian.AppendUint64(b, x.Client)
	b = binary.LittleEndian.AppendUint64(b, uint64(x.Length))
	b = binary.LittleEndian.AppendUint16(b, uint16(x.Port))
	b = append(b, byte(x.Kind))
	texts := x.texts()
	for _, t := range texts {
		b = binary.LittleEndian.AppendUint16(b, uint16(len(t)))
	}
	for _, t := range texts {
		b = append(b, t...)
	}
	return b
}

// decode takes the first line off what encode has made. The slices alias b.
func decode(b []byte) (line decoded, rest []byte) {
	line.at = time.Unix(0, int64(binary.LittleEndian.Uint64(b)))
	line.client, line.length = binary.LittleEndian.Uint64(b[8:]), int(binary.LittleEndian.Uint64(b[16:]))
	line.port, line.kind = int(binary.LittleEndian.Uint16(b[24:])), Kind(b[26])
	rest = b[headSize:]
	for i := range line.texts {
		n := binary.LittleEndian.Uint16(b[27+2*i:])
		line.texts[i], rest = rest[:n], rest[n:]
	}
	return line, rest
}

// decoded is a line again: texts are those of [Line.texts].
type decoded struct {
	at     time.Time
	client uint64
	length int
	port   int
	kind   Kind
	texts  [5][]byte
}
