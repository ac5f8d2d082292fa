package memory

import (
	"runtime/metrics"
)

// Heap is what the Go runtime has of memory, in bytes.
type Heap struct {
	Objects   uint64 // live objects and garbage not collected yet
	Live      uint64 // of them, live at the last collection
	Scannable uint64 // of Live, what a collection has to look through for pointers
	Unused    uint64 // room in spans with objects
	Free      uint64 // spans without objects that were not returned to the system
	Stacks    uint64 // of goroutines, and free ones
	Metadata  uint64 // the runtime's own data, as far as it is mapped; not all of it is resident
	Allocated uint64 // by all allocations so far
	Cycles    uint64 // collections so far
}

// Slack is what a collection and a return to the system could win, as far as the runtime
// knows: what was live at the last collection may be garbage, too.
func (h Heap) Slack() uint64 {
	slack := h.Free
	if h.Objects > h.Live {
		slack += h.Objects - h.Live
	}
	return slack
}

// heapMetrics are the runtime's names of the fields of Heap, in their order; what is
// behind the first nine is summed up as Metadata, too.
var heapMetrics = []string{
	"/memory/classes/heap/objects:bytes",
	"/gc/heap/live:bytes",
	"/memory/classes/heap/unused:bytes",
	"/memory/classes/heap/free:bytes",
	"/memory/classes/heap/stacks:bytes",
	"/memory/classes/metadata/other:bytes",
	"/gc/heap/allocs:bytes",
	"/gc/cycles/total:gc-cycles",
	"/gc/scan/heap:bytes",
	"/memory/classes/metadata/mcache/free:bytes",
	"/memory/classes/metadata/mcache/inuse:bytes",
	"/memory/classes/metadata/mspan/free:bytes",
	"/memory/classes/metadata/mspan/inuse:bytes",
	"/memory/classes/os-stacks:bytes",
	"/memory/classes/other:bytes",
	"/memory/classes/profiling/buckets:bytes",
}

// Read reads the runtime's own account. It does not stop the program.
func Read() Heap {
	samples := make([]metrics.Sample, len(heapMetrics))
	for i, name := range heapMetrics {
		samples[i].Name = name
	}
	metrics.Read(samples)
	v := func(i int) uint64 { return samples[i].Value.Uint64() }
	h := Heap{Objects: v(0), Live: v(1), Unused: v(2), Free: v(3), Stacks: v(4), Metadata: v(5), Allocated: v(6), Cycles: v(7), Scannable: v(8)}
	for i := 9; i < len(samples); i++ {
		h.Metadata += v(i)
	}
	return h
}

// CHeap is what malloc has given out and what it keeps for later, in bytes; nothing in a
// program without C. What it keeps is not all resident: glibc counts what it has
// returned to the system by malloc_trim, too.
type CHeap struct{ InUse, Free int64 }

// ReadC asks malloc.
func ReadC() CHeap { return readMalloc() }
