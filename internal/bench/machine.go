package main

import (
	"debug/buildinfo"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"strings"
	"time"

	"github.com/pgebb/pgebb/internal/testpg"
)

// environment is where and with what the figures were taken.
type environment struct {
	Date       time.Time `json:"date"` // of the start
	Cores      int       `json:"cores"`
	Processor  string    `json:"processor"`
	Kernel     string    `json:"kernel"`
	HugePages  string    `json:"transparent_huge_pages"`
	LoadBefore string    `json:"load_before"` // of the last minute
	LoadAfter  string    `json:"load_after"`
	Go         string    `json:"go"`
	Pgebb      string    `json:"pgebb,omitempty"`
	Race       bool      `json:"race,omitempty"` // pgebb was built with the race detector
	Postgres   string    `json:"postgres,omitempty"`
	PgBouncer  string    `json:"pgbouncer,omitempty"`
}

// machine looks at what the figures will be taken on.
func machine(b *rig) environment {
	found := environment{
		Date: time.Now().UTC(), Cores: runtime.NumCPU(), Processor: processor(), Kernel: output("uname", "-r"),
		HugePages: hugePages(), LoadBefore: loadAverage(), Go: runtime.Version(),
	}
	if b.pg == nil {
		return found
	}
	found.Pgebb, found.Race = built(b.o.binary)
	if postgres, err := testpg.Program("postgres"); err == nil {
		found.Postgres = output(postgres, "--version")
	}
	if b.bouncer != "" {
		found.PgBouncer, _, _ = strings.Cut(output(b.bouncer, "--version"), "\n")
	}
	return found
}

// built tells of what source pgebb was built, and whether with the race detector.
func built(path string) (version string, race bool) {
	info, err := buildinfo.ReadFile(path)
	if err != nil {
		return "of unknown origin", false
	}
	version = info.GoVersion
	for _, s := range info.Settings {
		switch {
		case s.Key == "vcs.revision":
			version = s.Value[:min(12, len(s.Value))] + ", " + version
		case s.Key == "vcs.modified" && s.Value == "true":
			version = "changed since " + version
		case s.Key == "-race" && s.Value == "true":
			race = true
		}
	}
	return version, race
}

func processor() string {
	text, _ := os.ReadFile("/proc/cpuinfo") // not everywhere
	if m := regexp.MustCompile(`(?m)^model name\s*: (.*)$`).FindSubmatch(text); m != nil {
		return string(m[1])
	}
	return runtime.GOARCH
}

// hugePages is the setting in force, which the kernel puts in brackets.
func hugePages() string {
	text, _ := os.ReadFile("/sys/kernel/mm/transparent_hugepage/enabled") // not everywhere
	if m := regexp.MustCompile(`\[(\w+)\]`).FindSubmatch(text); m != nil {
		return string(m[1])
	}
	return "unknown"
}

// loadAverage is that of the last minute.
func loadAverage() string {
	text, _ := os.ReadFile("/proc/loadavg")
	load, _, _ := strings.Cut(string(text), " ")
	return load
}

func output(name string, args ...string) string {
	out, err := exec.Command(name, args...).Output()
	if err != nil {
		return name + " (version not known)"
	}
	return strings.TrimSpace(string(out))
}

// describe prints where the figures were taken, and how they are to be read.
func describe(w io.Writer, found environment, o options) {
	fmt.Fprintf(w, "Measured on %s: %d cores (%s), Linux %s, transparent huge pages %s; load average %s before and %s after; %s.",
		found.Date.Format("2006-01-02 15:04 MST"), found.Cores, found.Processor, found.Kernel, found.HugePages, found.LoadBefore, found.LoadAfter, found.Go)
	if found.Pgebb != "" {
		fmt.Fprintf(w, " pgebb (%s), %s", found.Pgebb, found.Postgres)
		if found.PgBouncer != "" {
			fmt.Fprintf(w, ", %s", found.PgBouncer)
		}
		fmt.Fprint(w, ".")
	}
	fmt.Fprintln(w, " Medians of the rounds, with their range. The ratio is the first system's figure in the second's: the median of the rounds' ratios, their range, and the ratio of the medians. A target is of the first; where the range of ratios holds the target, more rounds on a quieter machine (-rounds) tell more.")
	if found.Pgebb != "" && found.PgBouncer == "" {
		fmt.Fprintln(w, "\nThere is no pgbouncer on the PATH, so pgebb is compared with nothing.")
	}
	if found.Race {
		fmt.Fprintln(w, "\nThis pgebb was built with the race detector: its figures mean nothing.")
	}
	if o.syscalls {
		fmt.Fprintln(w, "\nSystem calls were counted, which adds to the processor time of both.")
	}
}
