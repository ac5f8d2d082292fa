package wire

import "encoding/binary"

// begin appends a header whose length [finish] fills in.
func begin(b []byte, typ byte) ([]byte, int) {
	return append(b, typ, 0, 0, 0, 0), len(b) + 1
}

func finish(b []byte, at int) []byte {
	binary.BigEndian.PutUint32(b[at:], uint32(len(b)-at))
	return b
}

func appendCString(b []byte, s string) []byte { return append(append(b, s...), 0) }

// AppendEmpty appends a message without a body: Sync, Flush, CopyDone,
// Terminate, ParseComplete and the like.
func AppendEmpty(b []byte, typ byte) []byte { return append(b, typ, 0, 0, 0, 4) }

// AppendQuery appends a Query.
func AppendQuery(b []byte, sql string) []byte {
	b, at := begin(b, Query)
	return finish(appendCString(b, sql), at)
}

// AppendCopyFail appends a CopyFail with its reason.
func AppendCopyFail(b []byte, reason string) []byte {
	b, at := begin(b, CopyFail)
	return finish(appendCString(b, reason), at)
}

// AppendReadyForQuery appends a ReadyForQuery with a transaction status.
func AppendReadyForQuery(b []byte, status byte) []byte {
	return append(b, ReadyForQuery, 0, 0, 0, 5, status)
}

// AppendParameterStatus appends a ParameterStatus.
func AppendParameterStatus(b []byte, name, value string) []byte {
	b, at := begin(b, ParameterStatus)
	return finish(appendCString(appendCString(b, name), value), at)
}

// AppendBackendKeyData appends a BackendKeyData; the secret is 4 bytes for
// protocol 3.0 and may be up to 256 bytes from 3.2 on.
func AppendBackendKeyData(b []byte, pid uint32, secret []byte) []byte {
	b, at := begin(b, BackendKeyData)
	b = binary.BigEndian.AppendUint32(b, pid)
	return finish(append(b, secret...), at)
}

// Field is one field of an ErrorResponse or a NoticeResponse.
type Field struct {
	Type  byte
	Value string
}

// AppendFields appends an ErrorResponse or a NoticeResponse, leaving out
// fields without a value.
func AppendFields(b []byte, typ byte, fields ...Field) []byte {
	b, at := begin(b, typ)
	for _, f := range fields {
		if f.Value != "" {
			b = appendCString(append(b, f.Type), f.Value)
		}
	}
	return finish(append(b, 0), at)
}

// AppendRaw appends a message with a body that is ready made.
func AppendRaw(b []byte, typ byte, body []byte) []byte {
	b, at := begin(b, typ)
	return finish(append(b, body...), at)
}

// AppendStartup appends a StartupMessage, which has no type: a protocol version,
// then pairs of names and values.
func AppendStartup(b []byte, version uint32, pairs ...string) []byte {
	at := len(b)
	b = append(b, 0, 0, 0, 0)
	b = binary.BigEndian.AppendUint32(b, version)
	for _, s := range pairs {
		b = appendCString(b, s)
	}
	return finish(append(b, 0), at)
}

// AppendCancelRequest appends a CancelRequest, which has no type either.
func AppendCancelRequest(b []byte, pid uint32, secret []byte) []byte {
	at := len(b)
	b = append(b, 0, 0, 0, 0)
	b = binary.BigEndian.AppendUint32(b, CancelRequestCode)
	b = binary.BigEndian.AppendUint32(b, pid)
	return finish(append(b, secret...), at)
}

// AppendParse appends a Parse; body is what follows the name: the text with its NUL, and
// the types of the parameters.
func AppendParse(b []byte, name, body string) []byte {
	b, at := begin(b, Parse)
	return finish(append(appendCString(b, name), body...), at)
}

// AppendCloseStatement appends a Close of a prepared statement.
func AppendCloseStatement(b []byte, name string) []byte {
	b, at := begin(b, Close)
	return finish(appendCString(append(b, 'S'), name), at)
}

// AppendDescribeStatement appends a Describe of a prepared statement.
func AppendDescribeStatement(b []byte, name string) []byte {
	b, at := begin(b, Describe)
	return finish(appendCString(append(b, 'S'), name), at)
}

// AppendHeader appends the header of a message whose whole size is known.
func AppendHeader(b []byte, typ byte, size int) []byte {
	return binary.BigEndian.AppendUint32(append(b, typ), uint32(size-1))
}
