package testpg

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// CPUTime is the processor time that a process has used so far, in nanoseconds as the
// scheduler counts it, with that of its threads that have ended.
func CPUTime(pid int) (time.Duration, error) {
	// The clock of a process as clock_getcpuclockid(3) makes it, of the scheduler's kind.
	clock := int32(^pid<<3 | 2)
	var t unix.Timespec
	if err := unix.ClockGettime(clock, &t); err != nil {
		return 0, fmt.Errorf("reading the processor time of process %d: %w", pid, err)
	}
	return time.Duration(t.Nano()), nil
}

// RSS is the resident set size of a process in bytes.
func RSS(pid int) (int64, error) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid))
	if err != nil {
		return 0, fmt.Errorf("process %d is not there: %w", pid, err)
	}
	pages, err := strconv.ParseInt(strings.Fields(string(b))[1], 10, 64)
	if err != nil {
		return 0, fmt.Errorf("reading statm: %w", err)
	}
	return pages * int64(os.Getpagesize()), nil
}

// OpenFDs is the number of descriptors that a process has open.
func OpenFDs(pid int) (int, error) {
	entries, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
	if err != nil {
		return 0, fmt.Errorf("process %d is not there: %w", pid, err)
	}
	return len(entries), nil
}
