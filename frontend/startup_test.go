package frontend

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"reflect"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/pgebb/pgebb/backend"
	"github.com/pgebb/pgebb/internal/wire"
)

// script is a connection that reads a text and keeps what is written.
type script struct {
	net.Conn
	io.Reader
	wrote bytes.Buffer
}

func (s *script) Read(p []byte) (int, error)  { return s.Reader.Read(p) }
func (s *script) Write(p []byte) (int, error) { return s.wrote.Write(p) }
func (s *script) SetDeadline(time.Time) error { return nil }

func packet(version uint32, pairs ...string) []byte {
	return wire.AppendStartup(nil, version, pairs...)
}

// manyParams is a StartupMessage with that many parameters, each of which is there twice.
func manyParams(n int) []byte {
	pairs := []string{"user", "u"}
	for i := range 2 * n {
		pairs = append(pairs, fmt.Sprint("p", i%n), "")
	}
	return packet(wire.Version30, pairs...)
}

func TestStartupMessages(t *testing.T) {
	params := func(pairs ...string) (p []backend.Param) {
		for i := 0; i < len(pairs); i += 2 {
			p = append(p, backend.Param{Name: pairs[i], Value: pairs[i+1]})
		}
		return p
	}
	for name, c := range map[string]struct {
		in    []byte
		want  startup
		wrote string
	}{
		"a user":                          {packet(wire.Version30, "user", "u"), startup{User: "u", Database: "u"}, ""},
		"a user and database":             {packet(wire.Version30, "user", "u", "database", "d"), startup{User: "u", Database: "d"}, ""},
		"parameters":                      {packet(wire.Version30, "user", "u", "a", "1", "b", ""), startup{User: "u", Database: "u", Params: params("a", "1", "b", "")}, ""},
		"the last one holds":              {packet(wire.Version30, "user", "u", "TimeZone", "x", "a", "1", "timezone", "y"), startup{User: "u", Database: "u", Params: params("a", "1", "timezone", "y")}, ""},
		"no replication":                  {packet(wire.Version30, "user", "u", "replication", "off"), startup{User: "u", Database: "u"}, ""},
		"options":                         {packet(wire.Version30, "user", "u", "options", `-c a=1 -cb=2  --work-mem=3MB -c d=x\ y\\`), startup{User: "u", Database: "u", Params: params("a", "1", "b", "2", "work_mem", "3MB", "d", `x y\`)}, ""},
		"options come first":              {packet(wire.Version30, "user", "u", "a", "1", "options", "-c A=2 -c b=3 -c b=4"), startup{User: "u", Database: "u", Params: params("b", "4", "a", "1")}, ""},
		"the last options":                {packet(wire.Version30, "options", "-c a=1", "user", "u", "options", "-c b=2"), startup{User: "u", Database: "u", Params: params("b", "2")}, ""},
		"no options":                      {packet(wire.Version30, "user", "u", "options", " \t\n "), startup{User: "u", Database: "u"}, ""},
		"options cannot name a user":      {packet(wire.Version30, "user", "u", "options", "-c user=v --database=w"), startup{User: "u", Database: "u", Params: params("user", "v", "database", "w")}, ""},
		"an empty database":               {packet(wire.Version30, "user", "u", "database", ""), startup{User: "u", Database: "u"}, ""},
		"the last user":                   {packet(wire.Version30, "user", "u", "user", "v"), startup{User: "v", Database: "v"}, ""},
		"3.1 is 3.0":                      {packet(3<<16|1, "user", "u"), startup{User: "u", Database: "u"}, "v\x00\x00\x00\x0c\x00\x03\x00\x00\x00\x00\x00\x00"},
		"3.2":                             {packet(3<<16|2, "user", "u"), startup{Minor: 2, User: "u", Database: "u"}, ""},
		"the newest one":                  {packet(3<<16|0xffff, "user", "u", "_pq_.x", "1", "_pq_.", ""), startup{Minor: 2, User: "u", Database: "u"}, "v\x00\x00\x00\x19\x00\x03\x00\x02\x00\x00\x00\x02_pq_.x\x00_pq_.\x00"},
		"a newer one":                     {packet(3<<16|7, "user", "u"), startup{Minor: 2, User: "u", Database: "u"}, "v\x00\x00\x00\x0c\x00\x03\x00\x02\x00\x00\x00\x00"},
		"an unknown option":               {packet(wire.Version30, "user", "u", "_pq_.x", "1"), startup{User: "u", Database: "u"}, "v\x00\x00\x00\x13\x00\x03\x00\x00\x00\x00\x00\x01_pq_.x\x00"},
		"requests before it":              {append(append([]byte{0, 0, 0, 8, 0x04, 0xd2, 0x16, 0x30}, 0, 0, 0, 8, 0x04, 0xd2, 0x16, 0x2f), packet(wire.Version30, "user", "u")...), startup{User: "u", Database: "u"}, "NN"},
		"a cancel request":                {[]byte("\x00\x00\x00\x10\x04\xd2\x16\x2e\x00\x00\x00\x07abcd"), startup{Cancel: &cancelRequest{7, []byte("abcd")}}, ""},
		"the longest key":                 {wire.AppendCancelRequest(nil, 7, bytes.Repeat([]byte("k"), 256)), startup{Cancel: &cancelRequest{7, bytes.Repeat([]byte("k"), 256)}}, ""},
		"a cancel request after requests": {append([]byte{0, 0, 0, 8, 0x04, 0xd2, 0x16, 0x2f}, wire.AppendCancelRequest(nil, 7, []byte("abcd"))...), startup{Cancel: &cancelRequest{7, []byte("abcd")}}, "N"},
		"a longer key":                    {append([]byte("\x00\x00\x00\x2c\x04\xd2\x16\x2e\x00\x00\x00\x07"), bytes.Repeat([]byte("k"), 32)...), startup{Cancel: &cancelRequest{7, bytes.Repeat([]byte("k"), 32)}}, ""},
	} {
		for how, reader := range map[string]func(io.Reader) io.Reader{"whole": func(r io.Reader) io.Reader { return r }, "in single bytes": iotest.OneByteReader, "in halves": iotest.HalfReader} {
			rest := strings.NewReader(string(c.in) + "next")
			conn := &script{Reader: reader(rest)}
			st, err := (&reception{conn: conn}).readStartup()
			if err != nil {
				t.Errorf("%s, %s: %v", name, how, err)
				continue
			}
			if !reflect.DeepEqual(*st, c.want) {
				t.Errorf("%s, %s: %+v, want %+v", name, how, *st, c.want)
			}
			if got := conn.wrote.String(); got != c.wrote {
				t.Errorf("%s, %s: %q is answered, want %q", name, how, got, c.wrote)
			}
			if rest.Len() != len("next") {
				t.Errorf("%s, %s: %d bytes behind it are left of %d", name, how, rest.Len(), len("next"))
			}
		}
	}
}

func TestStartupMessagesThatAreRefused(t *testing.T) {
	for name, c := range map[string]struct {
		in   []byte
		code string // empty: closed without a word
	}{
		"nothing":                        {nil, ""},
		"half a length":                  {[]byte{0, 0}, ""},
		"too short":                      {[]byte{0, 0, 0, 7, 0, 3, 0}, ""},
		"too long":                       {[]byte{0, 1, 0, 1, 0, 3, 0, 0}, ""},
		"cut off":                        {packet(wire.Version30, "user", "u")[:12], ""},
		"a cancel request too long":      {append([]byte{0, 0, 1, 0x20, 0x04, 0xd2, 0x16, 0x2e}, make([]byte, 0x118)...), ""},
		"a cancel request too short":     {[]byte("\x00\x00\x00\x0c\x04\xd2\x16\x2e\x00\x00\x00\x07"), ""},
		"another major version":          {packet(2<<16, "user", "u"), "0A000"},
		"no user":                        {packet(wire.Version30, "database", "d"), "28000"},
		"an empty user":                  {packet(wire.Version30, "user", ""), "28000"},
		"no terminator":                  {[]byte("\x00\x00\x00\x0d\x00\x03\x00\x00user\x00"), "08P01"},
		"a name without a value":         {[]byte("\x00\x00\x00\x0c\x00\x03\x00\x00user"), "08P01"},
		"bytes behind the end":           {[]byte("\x00\x00\x00\x11\x00\x03\x00\x00user\x00u\x00\x00x"), "08P01"},
		"replication":                    {packet(wire.Version30, "user", "u", "replication", "database"), "0A000"},
		"an argument":                    {packet(wire.Version30, "user", "u", "options", "-B 8"), "42601"},
		"an option without a value":      {packet(wire.Version30, "user", "u", "options", "-c a"), "42601"},
		"options without a value":        {packet(wire.Version30, "user", "u", "options", "--a-b"), "42601"},
		"a trailing -c":                  {packet(wire.Version30, "user", "u", "options", "-c a=1 -c"), "42601"},
		"too many parameters":            {manyParams(maxParams + 1), "54000"},
		"a cancel request much too long": {wire.AppendCancelRequest(nil, 7, make([]byte, 257)), ""},
		"SSLRequest twice":               {[]byte{0, 0, 0, 8, 0x04, 0xd2, 0x16, 0x2f, 0, 0, 0, 8, 0x04, 0xd2, 0x16, 0x2f}, "0A000"},
	} {
		_, err := (&reception{conn: &script{Reader: bytes.NewReader(c.in)}}).readStartup()
		var e *Error
		switch {
		case err == nil:
			t.Errorf("%s is accepted", name)
		case errors.As(err, &e) && e.Code != c.code, !errors.As(err, &e) && c.code != "":
			t.Errorf("%s: %v, want %q", name, err, c.code)
		}
	}
}

func TestAsManyParametersAsAnybodyNeeds(t *testing.T) {
	st, err := (&reception{conn: &script{Reader: bytes.NewReader(manyParams(maxParams))}}).readStartup()
	if err != nil || len(st.Params) != maxParams {
		t.Fatalf("%v, %v", st, err)
	}
}

// greedy is a reader that notes the most that it was asked for.
type greedy struct {
	io.Reader
	most int
}

func (g *greedy) Read(p []byte) (int, error) {
	g.most = max(g.most, len(p))
	return g.Reader.Read(p)
}

// TestAnnouncedLengthsTakeNoMemory has a client that announces the longest packet and
// sends nothing of it.
func TestAnnouncedLengthsTakeNoMemory(t *testing.T) {
	in := &greedy{Reader: bytes.NewReader([]byte{0, 1, 0, 0, 0, 3, 0, 0})}
	if _, err := (&reception{conn: &script{Reader: in}}).readStartup(); !errors.Is(err, errNoStartup) {
		t.Fatal(err)
	}
	if in.most > 1024 {
		t.Errorf("there is a buffer of %d bytes for it", in.most)
	}
}

func FuzzStartup(f *testing.F) {
	f.Add(packet(wire.Version30, "user", "u", "options", "-c a=b"))
	f.Add(packet(3<<16|9999, "user", "u", "_pq_.x", "1"))
	f.Add([]byte("\x00\x00\x00\x10\x04\xd2\x16\x2e\x00\x00\x00\x07abcd"))
	f.Add([]byte{0, 0, 0, 8, 0x04, 0xd2, 0x16, 0x2f})
	f.Add([]byte{0xff, 0xff, 0xff, 0xff})
	f.Fuzz(func(t *testing.T, in []byte) {
		conn := &script{Reader: bytes.NewReader(in)}
		st, err := (&reception{conn: conn}).readStartup()
		if n := bytes.Count(conn.wrote.Bytes(), []byte("v\x00")); n > 1 && !bytes.Contains(in, []byte("v\x00")) {
			t.Fatalf("the version is negotiated %d times", n)
		}
		if err != nil {
			return
		}
		if st.Cancel == nil && (st.User == "" || st.Database == "" || st.Minor > maxMinor) {
			t.Fatalf("accepted: %+v", st)
		}
		for i, p := range st.Params {
			for _, q := range st.Params[:i] {
				if strings.EqualFold(p.Name, q.Name) {
					t.Fatalf("%s is there twice", p.Name)
				}
			}
		}
	})
}
