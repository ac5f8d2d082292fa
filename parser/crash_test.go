package parser

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	libpgquery "github.com/pganalyze/pg_query_go/v6/parser"
	"golang.org/x/sys/unix"

	"github.com/pgebb/pgebb/internal/leak"
	"github.com/pgebb/pgebb/internal/verdict"
)

// A parser in C that runs out of stack ends the process, so what is tried here is tried in
// processes of their own: this test binary again, with childVariable set.
const childVariable = "PGEBB_PARSER_CHILD"

// children are what such a process does with a shape.
var children = map[string]func(shape){
	// The parser is given texts that are as deep as they may be with more stack.
	"parse": func(s shape) {
		var usual unix.Rlimit
		_ = unix.Getrlimit(unix.RLIMIT_STACK, &usual)
		n := largest(s, depthFor(safety*usual.Cur))
		_, key, _ := scan([]byte(s.text(n)), nil, false)
		_, _ = libpgquery.ParseToProtobuf(string(key))
	},
	// A Judge is given texts of all sizes.
	"judge": func(s shape) {
		j := newJudge()
		for _, size := range []int{1 << 10, 100 << 10, 10 << 20} {
			n := max(1, size/max(1, len(s.open)+len(s.close)))
			j.Judge([]byte(s.text(n)), verdict.Tree)
		}
		n := largest(s, maxDepth())
		j.Judge([]byte(s.text(n)), verdict.Tree)
		j.Wait()
	},
}

// safety is how many times as much stack there must be as a text within the limits can need.
const safety = 4

func TestMain(m *testing.M) {
	child := children[os.Getenv(childVariable)]
	if child == nil {
		os.Exit(leak.Check(m))
	}
	for _, name := range shapeNames() {
		fmt.Fprintln(os.Stdout, name)
		child(shapes[name])
	}
	var usage unix.Rusage
	_ = unix.Getrusage(unix.RUSAGE_SELF, &usage)
	fmt.Fprintf(os.Stdout, "done, %d KiB at most\n", usage.Maxrss)
}

func shapeNames() []string {
	var names []string
	for name := range shapes {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// largest is how often the part of a shape can be repeated for a Judge to have it parsed.
func largest(s shape, depth int) int {
	within := func(n int) bool {
		f, key, _ := scan([]byte(s.text(n)), nil, false)
		return f.tokens <= maxTokens && f.depth <= depth && len(key) <= maxText
	}
	high := 1
	for within(high) && high < maxTokens {
		high *= 2
	}
	low := high / 2
	for low+1 < high {
		if n := (low + high) / 2; within(n) {
			low = n
		} else {
			high = n
		}
	}
	return low
}

// inChild runs this binary with a limit on stacks in KiB; it returns the most memory that it took.
func inChild(t *testing.T, what string, stack int) (kib int) {
	t.Helper()
	cmd := exec.Command("sh", "-c", fmt.Sprintf(`ulimit -s %d && exec "$0"`, stack), os.Args[0])
	cmd.Env = append(os.Environ(), childVariable+"="+what)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	last := ""
	for lines := bufio.NewScanner(bytes.NewReader(out)); lines.Scan(); {
		last = lines.Text()
	}
	if err != nil || !strings.HasPrefix(last, "done") {
		t.Fatalf("with stacks of %d KiB the parser dies of %q: %v\n%.300s", stack, last, err, stderr.String())
	}
	_, _ = fmt.Sscanf(last, "done, %d KiB", &kib)
	return kib
}

func TestTextsWithinTheLimitsNeedAFractionOfTheStack(t *testing.T) {
	for _, stack := range []int{256, 512, 2048} { // KiB
		t.Run(fmt.Sprint(safety*stack), func(t *testing.T) { inChild(t, "parse", stack) })
	}
}

func TestDepthFollowsTheStack(t *testing.T) {
	for stack, want := range map[uint64]int{
		8 << 20: maxLevels, 2 << 20: 896, 1 << 20: 384, 256 << 10: 0, 0: 0, unix.RLIM_INFINITY: 896,
	} {
		if got := depthFor(stack); got != want {
			t.Errorf("depthFor(%d) = %d, want %d", stack, got, want)
		}
	}
}
