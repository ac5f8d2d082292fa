package querylog

import (
	"bytes"
	"errors"
	"io"
	"os"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/pgebb/pgebb/internal/memory"
)

const (
	// maxOut is the size in bytes of the writer's buffer. A line fits into what is left
	// of it at outFull: a byte becomes at most four.
	maxOut  = 128 << 10
	outFull = maxOut - 4*(MaxText+4*maxName) - 1<<10

	// timeFormat is that of pgebb's own log.
	timeFormat = "2006-01-02T15:04:05.000Z07:00"

	// quiet is for how long nothing must come before the buffers are given back.
	quiet = time.Second
)

// sink is where lines go. It belongs to the writer once it has it.
type sink struct {
	path   string
	file   *os.File  // nil if they go to no file
	stdout io.Writer // nil if they do not go there
	torn   bool      // the file ends in the middle of a line
	failed bool      // and that it cannot be written was said
}

func (s *sink) used() bool { return s.file != nil || s.stdout != nil }

func (s *sink) close() error {
	if s.file == nil {
		return nil
	}
	return s.file.Close()
}

// writer is what belongs to the goroutine that writes.
type writer struct {
	l     *Log
	to    *sink
	out   []byte // formatted lines
	lines uint64 // in out
}

// run writes until Close.
func (l *Log) run() {
	defer close(l.ended)
	w := &writer{l: l, to: &sink{}}
	idle := time.NewTimer(quiet)
	defer idle.Stop()
	for {
		select {
		case <-l.wake:
			w.gather()
		case <-idle.C:
			w.giveBack()
			continue
		case <-l.closing: // nothing is added any more
			w.round()
			_ = w.to.close() // everything is written
			w.giveBack()
			return
		}
		w.round()
		idle.Reset(quiet)
	}
}

// gather waits until it is worth while to write.
func (w *writer) gather() {
	t := time.NewTimer(gathering)
	defer t.Stop()
	select {
	case <-t.C:
	case <-w.l.hurry:
	case <-w.l.closing:
	}
}

// round does what is to be done at the time.
func (w *writer) round() {
	l := w.l
	l.mu.Lock()
	queue, dropped := l.queue, l.untold
	if l.current != nil {
		queue = append(queue, item{chunk: l.current})
	}
	l.queue, l.current, l.untold = nil, nil, 0
	l.mu.Unlock()
	for _, it := range queue {
		if it.to == nil {
			w.chunk(it.chunk)
			continue
		}
		w.flush()
		_ = w.to.close() // everything is written
		w.to = it.to
	}
	w.flush()
	if dropped > 0 {
		w.out = time.Now().AppendFormat(append(w.buffer(), "time="...), timeFormat)
		w.out = append(strconv.AppendUint(append(w.out, " dropped="...), dropped, 10), '\n')
		w.flush()
	}
}

// buffer is what is to be written so far.
func (w *writer) buffer() []byte {
	if w.out == nil {
		w.out = make([]byte, 0, maxOut)
		w.l.out.Store(memory.SizeOf(maxOut))
	}
	return w.out
}

// chunk writes one and makes it a spare one.
func (w *writer) chunk(b []byte) {
	for rest := b; len(rest) > 0; {
		var line decoded
		line, rest = decode(rest)
		w.out = line.append(w.buffer())
		w.lines++
		if len(w.out) >= outFull {
			w.flush()
		}
	}
	w.l.mu.Lock()
	defer w.l.mu.Unlock()
	w.l.spare = append(w.l.spare, b[:0])
}

// flush writes what is formatted. What cannot be written is lost: to keep it would mean to
// drop what comes later.
func (w *writer) flush() {
	if len(w.out) == 0 {
		return
	}
	out, lines, to := w.out, w.lines, w.to
	w.out, w.lines = w.out[:0], 0
	defer func() {
		w.l.mu.Lock()
		w.l.lines -= int64(lines)
		w.l.mu.Unlock()
	}()
	if to.stdout != nil {
		if _, err := to.stdout.Write(out); err != nil && to.file == nil {
			w.lost("standard output", lines, err)
			return
		}
	}
	if to.file == nil {
		to.failed = false
		return
	}
	if to.torn {
		if _, err := to.file.Write([]byte{'\n'}); err != nil {
			w.lost(to.path, lines, err)
			return
		}
		to.torn = false
	}
	n, err := to.file.Write(out)
	if err != nil {
		to.torn = n > 0 && out[n-1] != '\n'
		w.lost(to.path, min(lines, uint64(bytes.Count(out[n:], []byte{'\n'}))), err)
		return
	}
	to.failed = false
}

// lost counts lines that could not be written, and says so once until it works again.
func (w *writer) lost(where string, lines uint64, err error) {
	w.l.dropped.Add(lines)
	w.l.mu.Lock()
	if !w.l.closed {
		w.l.untold += lines
	}
	w.l.mu.Unlock()
	if w.to.failed {
		return
	}
	w.to.failed = true
	var pe *os.PathError
	if errors.As(err, &pe) {
		err = pe.Err // the path is told anyway
	}
	w.l.log.Error("the query log cannot be written", "to", where, "error", err)
}

// giveBack gives the buffers back when nothing has come for a while.
func (w *writer) giveBack() {
	w.out = nil
	w.l.out.Store(0)
	w.l.mu.Lock()
	defer w.l.mu.Unlock()
	w.l.chunks -= len(w.l.spare)
	w.l.spare = nil
}

// append formats a line.
func (x decoded) append(b []byte) []byte {
	b = x.at.AppendFormat(append(b, "time="...), timeFormat)
	b = strconv.AppendUint(append(b, " client_id="...), x.client, 10)
	user, database, host, name, text := x.texts[0], x.texts[1], x.texts[2], x.texts[3], x.texts[4]
	b = appendWord(append(b, " user="...), user)
	b = appendWord(append(b, " database="...), database)
	b = appendHost(append(b, " client="...), host, x.port)
	b = append(append(b, " message="...), kinds[x.kind]...)
	if len(name) > 0 {
		b = appendWord(append(b, " statement="...), name)
	}
	if x.length > len(text) {
		b = strconv.AppendInt(append(b, " length="...), int64(x.length), 10)
	}
	if len(text) > 0 || x.kind != Execute {
		b = appendMasked(append(b, " query="...), text, x.length > len(text))
	}
	return append(b, '\n')
}

func appendHost(b, host []byte, port int) []byte {
	if port == 0 {
		return append(b, host...)
	}
	if bytes.IndexByte(host, ':') >= 0 {
		b = append(append(append(b, '['), host...), ']')
	} else {
		b = append(b, host...)
	}
	return strconv.AppendInt(append(b, ':'), int64(port), 10)
}

// appendWord appends a value, in quotes if it would not be told from what is around it.
func appendWord(b, word []byte) []byte {
	for _, c := range word {
		if c <= ' ' || c == '"' || c == '=' || c == '\\' || c >= utf8.RuneSelf || c == 0x7f {
			return strconv.AppendQuote(b, string(word))
		}
	}
	if len(word) == 0 {
		return append(b, `""`...)
	}
	return append(b, word...)
}
