// Package wire knows the framing of PostgreSQL's protocol version 3 over spans
// of bytes: a type byte, a length that includes itself, a body. It owns no
// buffer and no socket and has no opinion on what a message is good for.
//
// [Header] reads the five bytes in front of a message, the Append functions
// write the few messages that a pooler authors, [CString] and [ErrorField]
// read what a pooler must understand.
//
// The caveat that bites: every slice that goes in or out aliases the caller's
// buffer and is valid only as long as that is.
package wire

import (
	"bytes"
	"encoding/binary"
)

// HeaderSize is the size of a message's type and length in bytes.
const HeaderSize = 5

// MaxMessage is the largest message, header included, that Postgres accepts
// or sends: its buffers end at 1 GiB - 1 (MaxAllocSize).
const MaxMessage = 1<<30 - 1

// Message types that clients send ("frontend" in PostgreSQL's papers).
const (
	Query        = 'Q'
	Parse        = 'P'
	Bind         = 'B'
	Describe     = 'D'
	Execute      = 'E'
	Close        = 'C'
	Sync         = 'S'
	Flush        = 'H'
	FunctionCall = 'F'
	CopyFail     = 'f'
	Terminate    = 'X'
	Password     = 'p'
)

// Message types that both sides send.
const (
	CopyData = 'd'
	CopyDone = 'c'
)

// Message types that servers send ("backend" in PostgreSQL's papers).
const (
	Authentication       = 'R'
	BackendKeyData       = 'K'
	BindComplete         = '2'
	CloseComplete        = '3'
	CommandComplete      = 'C'
	CopyInResponse       = 'G'
	CopyOutResponse      = 'H'
	CopyBothResponse     = 'W'
	DataRow              = 'D'
	EmptyQueryResponse   = 'I'
	ErrorResponse        = 'E'
	FunctionCallResponse = 'V'
	NoData               = 'n'
	NoticeResponse       = 'N'
	NotificationResponse = 'A'
	ParameterDescription = 't'
	ParameterStatus      = 'S'
	ParseComplete        = '1'
	PortalSuspended      = 's'
	ReadyForQuery        = 'Z'
	RowDescription       = 'T'
)

// Transaction statuses of ReadyForQuery.
const (
	Idle          = 'I'
	InTransaction = 'T'
	Failed        = 'E'
)

// Header reads the header at the start of b, which must hold at least
// [HeaderSize] bytes. The size is that of the whole message with its header;
// it is below HeaderSize when the length field is not a legal one, and above
// [MaxMessage] when it is larger than Postgres would take.
func Header(b []byte) (typ byte, size int) {
	_ = b[4]
	return b[0], 1 + int(binary.BigEndian.Uint32(b[1:]))
}

// Legal reports whether a size that [Header] returned can be that of a message.
func Legal(size int) bool { return size >= HeaderSize && size <= MaxMessage }

// CString splits b behind its first NUL. The parts alias b; ok is false, and
// rest nil, when there is no NUL.
func CString(b []byte) (s, rest []byte, ok bool) {
	i := bytes.IndexByte(b, 0)
	if i < 0 {
		return b, nil, false
	}
	return b[:i], b[i+1:], true
}

// ErrorField returns one field of the body of an ErrorResponse or
// NoticeResponse, nil when it is missing or the body is malformed. It aliases
// body. https://www.postgresql.org/docs/current/protocol-error-fields.html
func ErrorField(body []byte, field byte) []byte {
	for len(body) > 1 && body[0] != 0 {
		value, rest, ok := CString(body[1:])
		if !ok {
			return nil
		}
		if body[0] == field {
			return value
		}
		body = rest
	}
	return nil
}

// Notification is what a NotificationResponse says.
type Notification struct {
	PID     uint32 // of who has notified
	Channel []byte
	Payload []byte
}

// ParseNotification reads the body of a NotificationResponse.
func ParseNotification(body []byte) (n Notification, ok bool) {
	if len(body) < 4 {
		return n, false
	}
	n.PID = binary.BigEndian.Uint32(body)
	if n.Channel, body, ok = CString(body[4:]); ok {
		n.Payload, _, ok = CString(body)
	}
	return n, ok
}

// What stands in the place of a protocol version in messages without a type.
const (
	CancelRequestCode = 1234<<16 | 5678
	SSLRequestCode    = 1234<<16 | 5679
	GSSENCRequestCode = 1234<<16 | 5680
	Version30         = 3 << 16
)
