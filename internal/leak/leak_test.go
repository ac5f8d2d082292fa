package leak_test

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/pgebb/pgebb/internal/leak"
)

// envLeak makes this test binary leave something behind.
const envLeak = "LEAK_TEST"

// kept keeps a file from being closed by the garbage collector.
var kept *os.File

// tests stands for a package's tests.
type tests func()

func (f tests) Run() int { f(); return 0 }

func TestMain(m *testing.M) {
	leak.SetPatience(200 * time.Millisecond)
	switch os.Getenv(envLeak) {
	case "":
		os.Exit(leak.Check(m))
	case "goroutine":
		os.Exit(leak.Check(tests(func() { go wait(nil) })))
	case "descriptor":
		os.Exit(leak.Check(tests(func() { kept = open() })))
	case "stopped":
		done, file := make(chan struct{}), open()
		os.Exit(leak.Check(tests(func() { go wait(done) }), func() { close(done) }, func() { file.Close() }))
	}
}

func wait(done chan struct{}) { <-done }

func open() *os.File {
	f, err := os.Open(os.DevNull)
	if err != nil {
		panic(err)
	}
	return f
}

func TestCheckFailsAPackageThatLeavesSomething(t *testing.T) {
	for _, c := range []struct{ leaves, want string }{
		{"goroutine", "leak_test.wait"},
		{"descriptor", os.DevNull},
		{"stopped", ""},
	} {
		t.Run(c.leaves, func(t *testing.T) {
			cmd := exec.Command(os.Args[0])
			cmd.Env = append(os.Environ(), envLeak+"="+c.leaves)
			out, err := cmd.CombinedOutput()
			if failed := err != nil; failed != (c.want != "") || !strings.Contains(string(out), c.want) {
				t.Errorf("error %v, output %q, want %q in it", err, out, c.want)
			}
		})
	}
}

// recorder is a test whose failures are collected.
type recorder struct {
	testing.TB
	cleanup []func()
	errors  []string
}

func (r *recorder) Cleanup(f func())          { r.cleanup = append(r.cleanup, f) }
func (r *recorder) Errorf(f string, a ...any) { r.errors = append(r.errors, fmt.Sprintf(f, a...)) }

// run runs the body as a test that is checked, and returns its failures.
func run(t *testing.T, check func(testing.TB), body func()) []string {
	r := &recorder{TB: t}
	check(r)
	body()
	for _, f := range r.cleanup {
		f()
	}
	return r.errors
}

func TestGoroutinesTellsThoseThatAreLeft(t *testing.T) {
	done := make(chan struct{})
	errors := run(t, leak.Goroutines, func() { go wait(done) })
	close(done)
	if len(errors) != 1 || !strings.Contains(errors[0], "leak_test.wait") {
		t.Errorf("one goroutine is left: %q", errors)
	}
	errors = run(t, leak.Goroutines, func() {
		ended := make(chan struct{})
		go func() { defer close(ended) }()
		<-ended
	})
	if len(errors) != 0 {
		t.Errorf("none is left: %q", errors)
	}
}

func TestFDsTellsThoseThatAreLeft(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0") // so that the runtime has its own descriptors
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	var left *os.File
	errors := run(t, leak.FDs, func() { left = open() })
	left.Close()
	if len(errors) != 1 || !strings.Contains(errors[0], os.DevNull) {
		t.Errorf("one descriptor is left: %q", errors)
	}
	errors = run(t, leak.FDs, func() { open().Close() })
	if len(errors) != 0 {
		t.Errorf("none is left: %q", errors)
	}
}
