// Package leak tells if tests leave goroutines or file descriptors behind.
//
// [Check] is for the TestMain of a package that has either, [Goroutines] and [FDs] are
// for single tests.
//
// The caveat that bites: both look at the whole process, so a test that uses them must
// not run in parallel with others.
package leak

import (
	"fmt"
	"maps"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
)

// patience is how long what is ending may take to end; constant but for this package's
// own tests.
var patience = 5 * time.Second

// Check runs a package's tests and then the given functions, which stop what the tests
// share. It returns the exit code for TestMain: not 0 if a test has failed, or if
// goroutines or descriptors are left.
func Check(m interface{ Run() int }, stop ...func()) int {
	goroutines, fds := stacks(), descriptors()
	code := m.Run()
	for _, f := range stop {
		f()
	}
	if code != 0 {
		return code
	}
	left := append(gone(stacks, goroutines), gone(descriptors, fds)...)
	for _, what := range left {
		fmt.Fprintf(os.Stderr, "left behind by the tests: %s\n", what)
	}
	return min(len(left), 1)
}

// Goroutines fails the test if, at its end, there are more goroutines than now.
func Goroutines(tb testing.TB) {
	before := stacks()
	tb.Cleanup(func() {
		for _, stack := range gone(stacks, before) {
			tb.Errorf("a goroutine is left behind: %s", stack)
		}
	})
}

// FDs fails the test if, at its end, descriptors are open that are not open now.
func FDs(tb testing.TB) {
	before := descriptors()
	tb.Cleanup(func() {
		for _, fd := range gone(descriptors, before) {
			tb.Errorf("a descriptor is left open: %s", fd)
		}
	})
}

// gone waits until there is nothing that was not there before, and returns what there
// still is after a while.
func gone(now func() map[string]string, before map[string]string) []string {
	deadline := time.Now().Add(patience)
	for {
		left := now()
		maps.DeleteFunc(left, func(key, _ string) bool { _, old := before[key]; return old })
		if len(left) == 0 || time.Now().After(deadline) {
			return slices.Sorted(maps.Values(left))
		}
		time.Sleep(time.Millisecond)
	}
}

// stacks returns the stacks of all goroutines by their number, without those of the
// testing package and of the runtime.
func stacks() map[string]string {
	buf := make([]byte, 1<<20)
	n := runtime.Stack(buf, true)
	for n == len(buf) {
		buf = make([]byte, 2*len(buf))
		n = runtime.Stack(buf, true)
	}
	all := map[string]string{}
	for stack := range strings.SplitSeq(string(buf[:n]), "\n\n") {
		harmless := func(function string) bool { return strings.Contains(stack, function) }
		if slices.ContainsFunc([]string{"testing.tRunner(", "testing.(*M).", "os/signal.loop(", "runtime.ReadTrace("}, harmless) {
			continue
		}
		number, _, _ := strings.Cut(stack, " [")
		all[number] = stack
	}
	return all
}

// descriptors returns what the open descriptors stand for, by what they are called.
func descriptors() map[string]string {
	// The runtime opens descriptors of its own at the first use of a file that it can
	// poll, and keeps them.
	if r, w, err := os.Pipe(); err == nil {
		r.Close()
		w.Close()
	}
	all := map[string]string{}
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return all // not Linux: nothing is found there
	}
	for _, e := range entries {
		target, err := os.Readlink("/proc/self/fd/" + e.Name())
		if err != nil {
			continue // the one that has read the folder
		}
		name := e.Name() + " " + target
		all[name] = name
	}
	return all
}
