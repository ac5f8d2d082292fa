package loop

import (
	"bytes"
	"crypto/tls"
	"reflect"
	"unsafe"
)

// A tls.Conn keeps the buffer that it has once read a record into, which is as long as
// the longest record so far: up to 33 KB for each idle connection. This file takes that
// buffer away between reads, and lends it the loop's instead. Where that is in a
// tls.Conn is private to crypto/tls, and looked up once by name and type; with a Go
// release where it is not found, everything works as well and idle connections are larger.
// TestATLSConnectionKeepsNoBuffers fails then.

// privates is where fields are in a tls.Conn.
var privates = findPrivates()

type privateFields struct {
	known            bool
	raw, input, hand uintptr
}

func findPrivates() (f privateFields) {
	conn := reflect.TypeFor[tls.Conn]()
	find := func(name string, typ reflect.Type) uintptr {
		field, ok := conn.FieldByName(name)
		f.known = f.known && ok && field.Type == typ
		return field.Offset
	}
	f.known = true
	f.raw = find("rawInput", reflect.TypeFor[bytes.Buffer]())
	f.input = find("input", reflect.TypeFor[bytes.Reader]())
	f.hand = find("hand", reflect.TypeFor[bytes.Buffer]())
	return f
}

// raw is what was read of the socket and not decrypted.
func (t *TLS) raw() *bytes.Buffer {
	return (*bytes.Buffer)(unsafe.Add(unsafe.Pointer(t.Conn), privates.raw))
}

// input is what was decrypted and not read; it is a part of raw's buffer.
func (t *TLS) input() *bytes.Reader {
	return (*bytes.Reader)(unsafe.Add(unsafe.Pointer(t.Conn), privates.input))
}

// hand is what is left of a handshake message.
func (t *TLS) hand() *bytes.Buffer {
	return (*bytes.Buffer)(unsafe.Add(unsafe.Pointer(t.Conn), privates.hand))
}

// lend has the connection read into the loop's buffer, for a read of up to n bytes. With
// that buffer it takes as much from the socket as is wanted, and not one record; what
// is decrypted is never longer than what was read. If little is wanted, because the
// client has to wait, it takes one record.
func (t *TLS) lend(l *Loop, n int) {
	tr := &t.transport
	if tr.lent {
		return
	}
	tr.room = recordsSize
	if !privates.known {
		return
	}
	raw := t.raw()
	if t.input().Len() > 0 || raw.Len() > smallRoom {
		return
	}
	b := l.records[:copy(l.records, raw.Bytes())]
	tr.room = max(n-len(b), smallRoom)
	if n < maxRecord {
		b = b[: len(b) : len(b)+smallRoom]
		tr.room = recordsSize
	}
	*raw = *bytes.NewBuffer(b)
	tr.lent = true
}

// spent reports that nothing was read that is still to be decrypted or fetched. Without
// a look inside, only a read can tell.
func (t *TLS) spent() bool {
	return privates.known && t.raw().Len() == 0 && t.input().Len() == 0
}

// setAside takes the loop's buffer back, and copies what is left in it. It reports
// whether the next read may find something in that without the socket.
func (t *TLS) setAside(l *Loop) (left bool) {
	if !privates.known {
		return true
	}
	tr, raw, input, hand := &t.transport, t.raw(), t.input(), t.hand()
	if b := make([]byte, input.Len()); len(b) > 0 {
		_, _ = input.Read(b) // a bytes.Reader has no errors but the end
		*input = *bytes.NewReader(b)
	} else {
		*input = bytes.Reader{}
	}
	if rest := raw.Bytes(); len(rest) == 0 {
		*raw = bytes.Buffer{}
	} else if tr.lent || len(rest) <= smallRoom {
		*raw = *bytes.NewBuffer(append(make([]byte, 0, roomFor(rest)), rest...))
	}
	tr.lent = false
	if hand.Len() == 0 {
		*hand = bytes.Buffer{}
	}
	held := input.Len() + raw.Cap() + hand.Cap()
	l.parts.Add(int64(held - tr.held))
	tr.held = held
	return input.Len() > 0 || wholeRecord(raw.Bytes())
}

// roomFor is how many bytes to have for what has come of a record: no more than that if
// it is little, so that nobody takes memory by announcing a long record, and otherwise
// all of it, so that what comes in small pieces is not copied for each. A tls.Conn wants
// bytes.MinRead more than it needs.
func roomFor(part []byte) int {
	if len(part) <= smallRoom {
		return len(part)
	}
	return max(len(part), min(recordSize(part), maxRecord)+bytes.MinRead)
}

// wholeRecord reports whether b begins with a whole record.
func wholeRecord(b []byte) bool { return len(b) >= 5 && len(b) >= recordSize(b) }

// recordSize is the length in bytes of the record that b begins with, header included.
func recordSize(b []byte) int { return 5 + int(b[3])<<8 + int(b[4]) }
