package querylog

import (
	"bytes"
	"errors"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// gate takes what is written to standard output, once it is let.
type gate struct {
	entered, open chan struct{}
	bytes.Buffer
}

func newGate() *gate { return &gate{entered: make(chan struct{}, 1), open: make(chan struct{})} }

func (g *gate) Write(p []byte) (int, error) {
	nudge(g.entered)
	<-g.open
	return g.Buffer.Write(p)
}

// broken is a standard output that nobody reads.
type broken struct{}

func (broken) Write([]byte) (int, error) { return 0, errors.New("it is broken") }

func configure(t *testing.T, l *Log, path string, stdout bool) {
	t.Helper()
	if err := l.Configure(path, stdout); err != nil {
		t.Fatal(err)
	}
}

func closed(t *testing.T, l *Log) {
	t.Helper()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// timeless is a log without the times, each of which must look like one.
func timeless(t *testing.T, log string) string {
	t.Helper()
	lines := strings.SplitAfter(log, "\n")
	for i, line := range lines {
		if line == "" {
			continue
		}
		when := regexp.MustCompile(`^time=\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}(Z|[+-]\d\d:\d\d) `).FindString(line)
		if when == "" {
			t.Errorf("a line has no time: %s", line)
		}
		lines[i] = line[len(when):]
	}
	return strings.Join(lines, "")
}

func TestLines(t *testing.T) {
	long := strings.Repeat("x", MaxText+1)
	for _, test := range []struct {
		line Line
		want string
	}{
		{Line{Kind: Query, Client: 7, User: "ann", Database: "app", Host: "127.0.0.1", Port: 5000, Text: []byte("SELECT 1"), Length: 8},
			`client_id=7 user=ann database=app client=127.0.0.1:5000 message=query query="SELECT 1"`},
		{Line{Kind: Parse, User: "a b", Database: "", Host: "::1", Port: 65535, Name: []byte("s=1"), Text: []byte("SELECT 'ä'\n\t\x1b\"\\\x00\xff"), Length: 18},
			`client_id=0 user="a b" database="" client=[::1]:65535 message=parse statement="s=1" query="SELECT 'ä'\n\t\x1b\"\\\x00\xff"`},
		{Line{Kind: Execute, User: "a", Database: "b", Host: "unix", Name: []byte("s")},
			`client_id=0 user=a database=b client=unix message=execute statement=s`},
		{Line{Kind: Query, User: "a", Database: "b", Host: "unix"},
			`client_id=0 user=a database=b client=unix message=query query=""`},
		{Line{Kind: Query, User: long, Database: "b", Host: "unix", Text: []byte(long), Length: len(long)},
			`client_id=0 user=` + long[:maxName] + ` database=b client=unix message=query length=8193 query="` + long[:MaxText] + `"`},
		{Line{Kind: Execute, User: "a", Database: "b", Host: "unix", Text: []byte("ALTER ROLE a PASSWORD 'secret'"), Length: 30},
			`client_id=0 user=a database=b client=unix message=execute query="ALTER ROLE a PASSWORD '***'"`},
		{Line{Kind: Query, User: "a", Database: "b", Host: "unix", Text: []byte("SELECT 'x' AS p"), Length: 30},
			`client_id=0 user=a database=b client=unix message=query length=30 query="SELECT '***' AS p"`},
	} {
		path := filepath.Join(t.TempDir(), "log")
		l := New(io.Discard, slog.New(slog.DiscardHandler))
		configure(t, l, path, false)
		l.Add(&test.line)
		closed(t, l)
		if got := timeless(t, read(t, path)); got != test.want+"\n" {
			t.Errorf("the log has %s\nwant %s", got, test.want)
		}
	}
}

func TestOnlyItsOwnerCanReadTheFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	l := New(io.Discard, slog.New(slog.DiscardHandler))
	configure(t, l, path, false)
	defer closed(t, l)
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if info.Mode().Perm() != 0o600 {
		t.Errorf("the mode of the file is %v", info.Mode())
	}
}

// TestLinesGoWhereTheyWouldHaveGone: those of before a rotation into the old file, those of
// after it into the new one, however far the writer is.
func TestLinesGoWhereTheyWouldHaveGone(t *testing.T) {
	dir := t.TempDir()
	path, rotated := filepath.Join(dir, "log"), filepath.Join(dir, "log.1")
	out := newGate()
	l := New(out, slog.New(slog.DiscardHandler))
	add := func(sql string) {
		if l.On() {
			l.Add(&Line{User: "a", Database: "b", Host: "unix", Text: []byte(sql)})
		}
	}
	add("off")
	configure(t, l, path, true)
	add("first")
	<-out.entered // the writer is stuck with the first line
	add("second")
	if err := os.Rename(path, rotated); err != nil {
		t.Fatal(err)
	}
	configure(t, l, path, false)
	add("third")
	if err := l.Configure(dir, false); err == nil || !strings.Contains(err.Error(), dir) {
		t.Errorf("a folder can be written: %v", err)
	}
	add("fourth")
	configure(t, l, "", false)
	add("off again")
	close(out.open)
	closed(t, l)
	for path, want := range map[string]string{rotated: "first second", path: "third fourth"} {
		var got []string
		for _, m := range regexp.MustCompile(`query="([^"]*)"`).FindAllStringSubmatch(read(t, path), -1) {
			got = append(got, m[1])
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s has %q, want %q", path, got, want)
		}
	}
	if strings.Contains(out.String(), "third") {
		t.Errorf("standard output has %s", out)
	}
}

// TestWhatDoesNotFitIsDroppedAndCounted: nobody takes what is written, so the buffer gets
// full, and no fuller than its limit.
func TestWhatDoesNotFitIsDroppedAndCounted(t *testing.T) {
	out := newGate()
	l := New(out, slog.New(slog.DiscardHandler))
	configure(t, l, "", true)
	line := &Line{User: "a", Database: "b", Host: "unix", Text: bytes.Repeat([]byte("x"), MaxText)}
	added := 0
	for ; l.Dropped() < 5; added++ {
		l.Add(line)
	}
	if added < 5+100 {
		t.Errorf("of %d lines 5 do not fit", added)
	}
	m := l.Memory()[0]
	if m.Bytes > m.Limit || m.Bytes < Limit/2 || m.Items != int64(added-5) {
		t.Errorf("%d lines are kept as %+v", added-5, m)
	}
	close(out.open)
	closed(t, l)
	if n := strings.Count(out.String(), " message=query "); n != added-5 {
		t.Errorf("%d lines are written, %d were kept", n, added-5)
	}
	if log := timeless(t, out.String()); !strings.HasSuffix(log, "dropped=5\n") {
		t.Errorf("the log does not say that lines are missing: it ends with %q", log[max(0, len(log)-50):])
	}
	if m := l.Memory()[0]; m.Bytes != 0 || m.Items != 0 {
		t.Errorf("%+v is kept at the end", m)
	}
}

func TestWhatCannotBeWrittenIsCountedAndSaidOnce(t *testing.T) {
	var said bytes.Buffer
	l := New(io.Discard, slog.New(slog.NewTextHandler(&said, nil)))
	w := &writer{l: l, to: &sink{stdout: broken{}}} // by hand, so that it is known when
	for range 3 {
		w.out, w.lines = append(w.buffer(), "x\ny\n"...), 2
		w.flush()
	}
	if got := l.Dropped(); got != 6 {
		t.Errorf("%d lines are lost", got)
	}
	if n := strings.Count(said.String(), "it is broken"); n != 1 {
		t.Errorf("that is said %d times: %s", n, said.String())
	}
}

// TestAFileThatIsFull: /dev/full is always.
func TestAFileThatIsFull(t *testing.T) {
	var said bytes.Buffer
	l := New(io.Discard, slog.New(slog.NewTextHandler(&said, nil)))
	configure(t, l, "/dev/full", false)
	l.Add(&Line{User: "a", Database: "b", Host: "unix", Text: []byte("SELECT 1")})
	closed(t, l)
	if got := l.Dropped(); got != 1 {
		t.Errorf("%d lines are lost", got)
	}
	if !strings.Contains(said.String(), "/dev/full") || !strings.Contains(said.String(), "no space left") {
		t.Errorf("it is said: %s", said.String())
	}
}

func TestCloseDoesNotWaitForWhoTakesNothing(t *testing.T) {
	out := newGate()
	l := New(out, slog.New(slog.DiscardHandler))
	configure(t, l, "", true)
	l.Add(&Line{User: "a", Database: "b", Host: "unix"})
	<-out.entered
	if err := l.Close(); err == nil {
		t.Error("all is written, it seems")
	}
	close(out.open)
	<-l.ended
}

func BenchmarkAdd(b *testing.B) {
	l := New(io.Discard, slog.New(slog.DiscardHandler))
	if err := l.Configure("", true); err != nil {
		b.Fatal(err)
	}
	line := &Line{User: "ann", Database: "app", Host: "127.0.0.1", Port: 5000, Text: []byte("SELECT abalance FROM pgbench_accounts WHERE aid = 12345")}
	b.ReportAllocs()
	for b.Loop() {
		l.Add(line)
	}
	_ = l.Close()
}
