package wire_test

import (
	"testing"

	"github.com/pgebb/pgebb/internal/wire"
)

// FuzzErrorField: any body is read without looking outside of it.
func FuzzErrorField(f *testing.F) {
	for _, s := range []string{"", "\x00", "SERROR\x00C42601\x00Mx\x00\x00", "C", "CC\x00", "M\x00\x00"} {
		f.Add([]byte(s), byte('C'))
	}
	f.Fuzz(func(t *testing.T, body []byte, field byte) {
		got := wire.ErrorField(body, field)
		if len(got) > len(body) {
			t.Fatalf("a field of %d bytes in a body of %d", len(got), len(body))
		}
		for _, b := range got {
			if b == 0 {
				t.Fatal("a NUL in a field")
			}
		}
	})
}

// FuzzHeader: what is called legal can be skipped without overflow.
func FuzzHeader(f *testing.F) {
	f.Add([]byte{'Q', 0, 0, 0, 4})
	f.Add([]byte{'Q', 0xff, 0xff, 0xff, 0xff})
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) < wire.HeaderSize {
			return
		}
		typ, size := wire.Header(b)
		if typ != b[0] {
			t.Fatalf("type %q", typ)
		}
		if wire.Legal(size) != (size >= wire.HeaderSize && size <= 1<<30-1) {
			t.Fatalf("Legal(%d) = %v", size, wire.Legal(size))
		}
	})
}
