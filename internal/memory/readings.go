package memory

import (
	"bytes"
	"fmt"
	"os"
	"runtime/metrics"
	"strconv"
)

// RSS is the resident set size of the process in bytes, from /proc/self/statm.
func RSS() (int64, error) {
	b, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return 0, fmt.Errorf("reading the resident set size: %w", err)
	}
	fields := bytes.Fields(b)
	if len(fields) < 2 {
		return 0, fmt.Errorf("reading the resident set size: statm says %q", b)
	}
	pages, err := strconv.ParseInt(string(fields[1]), 10, 64)
	if err != nil {
		return 0, fmt.Errorf("reading the resident set size: %w", err)
	}
	return pages * int64(os.Getpagesize()), nil
}

// Heap is what the Go runtime holds, in bytes.
type Heap struct {
	Free      uint64 // spans without objects that were not returned to the system
	Unused    uint64 // room in spans with objects
	Objects   uint64 // live objects and garbage not collected yet
	Live      uint64 // of them, live at the last collection
	Allocated uint64 // by all allocations so far
	Stacks    uint64 // of goroutines, and free ones
}

// Slack is what a collection and a return to the system could win.
func (h Heap) Slack() uint64 {
	slack := h.Free
	if h.Objects > h.Live {
		slack += h.Objects - h.Live
	}
	return slack
}

// Read reads the runtime's own account. It does not stop the program.
func Read() Heap {
	samples := []metrics.Sample{
		{Name: "/memory/classes/heap/free:bytes"},
		{Name: "/memory/classes/heap/unused:bytes"},
		{Name: "/memory/classes/heap/objects:bytes"},
		{Name: "/gc/heap/live:bytes"},
		{Name: "/gc/heap/allocs:bytes"},
		{Name: "/memory/classes/heap/stacks:bytes"},
	}
	metrics.Read(samples)
	v := func(i int) uint64 { return samples[i].Value.Uint64() }
	return Heap{Free: v(0), Unused: v(1), Objects: v(2), Live: v(3), Allocated: v(4), Stacks: v(5)}
}
