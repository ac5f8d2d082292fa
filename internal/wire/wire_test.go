package wire_test

import (
	"bytes"
	"testing"

	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/pgebb/pgebb/internal/wire"
)

func TestHeaderReadsTypeAndSizeOfTheWholeMessage(t *testing.T) {
	for name, c := range map[string]struct {
		in    []byte
		typ   byte
		size  int
		legal bool
	}{
		"sync":             {[]byte{'S', 0, 0, 0, 4}, 'S', 5, true},
		"a body":           {[]byte{'Q', 0, 0, 1, 4, 'x'}, 'Q', 261, true},
		"length below 4":   {[]byte{'Q', 0, 0, 0, 3}, 'Q', 4, false},
		"length 0":         {[]byte{'Q', 0, 0, 0, 0}, 'Q', 1, false},
		"negative length":  {[]byte{'Q', 0xff, 0xff, 0xff, 0xff}, 'Q', 1 << 32, false},
		"largest":          {[]byte{'Q', 0x3f, 0xff, 0xff, 0xfe}, 'Q', wire.MaxMessage, true},
		"one byte larger":  {[]byte{'Q', 0x3f, 0xff, 0xff, 0xff}, 'Q', wire.MaxMessage + 1, false},
		"two GiB and more": {[]byte{'d', 0x80, 0, 0, 0}, 'd', 1<<31 + 1, false},
	} {
		typ, size := wire.Header(c.in)
		if typ != c.typ || size != c.size || wire.Legal(size) != c.legal {
			t.Errorf("%s: Header = %q, %d, legal %v; want %q, %d, %v", name, typ, size, wire.Legal(size), c.typ, c.size, c.legal)
		}
	}
}

func TestErrorField(t *testing.T) {
	body := []byte("SERROR\x00C42601\x00Msyntax error\x00\x00")
	for field, want := range map[byte]string{'S': "ERROR", 'C': "42601", 'M': "syntax error", 'D': ""} {
		if got := wire.ErrorField(body, field); string(got) != want {
			t.Errorf("ErrorField(%q) = %q, want %q", field, got, want)
		}
	}
	for _, malformed := range []string{"", "\x00", "C", "C42601", "SERROR\x00C426"} {
		if got := wire.ErrorField([]byte(malformed), 'C'); got != nil {
			t.Errorf("ErrorField of %q = %q, want nil", malformed, got)
		}
	}
}

// TestAppendedMessagesAreReadBack holds what we author to another implementation.
func TestAppendedMessagesAreReadBack(t *testing.T) {
	var b []byte
	b = wire.AppendParameterStatus(b, "TimeZone", "UTC")
	b = wire.AppendBackendKeyData(b, 7, []byte{1, 2, 3, 4})
	b = wire.AppendFields(b, wire.ErrorResponse, wire.Field{Type: 'S', Value: "FATAL"}, wire.Field{Type: 'D'}, wire.Field{Type: 'C', Value: "57P01"})
	b = wire.AppendReadyForQuery(b, wire.Idle)
	f := pgproto3.NewFrontend(bytes.NewReader(b), nil)
	next := func() pgproto3.BackendMessage {
		t.Helper()
		m, err := f.Receive()
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	if m, ok := next().(*pgproto3.ParameterStatus); !ok || m.Name != "TimeZone" || m.Value != "UTC" {
		t.Errorf("ParameterStatus = %+v", m)
	}
	if m, ok := next().(*pgproto3.BackendKeyData); !ok || m.ProcessID != 7 || !bytes.Equal(m.SecretKey, []byte{1, 2, 3, 4}) {
		t.Errorf("BackendKeyData = %+v", m)
	}
	if m, ok := next().(*pgproto3.ErrorResponse); !ok || m.Severity != "FATAL" || m.Code != "57P01" || m.Detail != "" {
		t.Errorf("ErrorResponse = %+v", m)
	}
	if m, ok := next().(*pgproto3.ReadyForQuery); !ok || m.TxStatus != 'I' {
		t.Errorf("ReadyForQuery = %+v", m)
	}
}

func TestAppendedRequestsAreReadBack(t *testing.T) {
	var b []byte
	b = wire.AppendQuery(b, "SELECT 1")
	b = wire.AppendCopyFail(b, "no")
	b = wire.AppendEmpty(b, wire.Sync)
	r := pgproto3.NewBackend(bytes.NewReader(b), nil)
	if m, err := r.Receive(); err != nil || m.(*pgproto3.Query).String != "SELECT 1" {
		t.Errorf("Query = %+v, %v", m, err)
	}
	if m, err := r.Receive(); err != nil || m.(*pgproto3.CopyFail).Message != "no" {
		t.Errorf("CopyFail = %+v, %v", m, err)
	}
	if m, err := r.Receive(); err != nil {
		t.Errorf("Sync = %+v, %v", m, err)
	}
}
