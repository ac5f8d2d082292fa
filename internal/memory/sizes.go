package memory

import (
	"math"
	"runtime/metrics"
	"slices"
)

// sizeClasses are the sizes in bytes in which the allocator makes small objects, in
// order; constant. The runtime tells them as the bounds of one of its histograms.
var sizeClasses = readSizeClasses()

// pageSize is what the allocator rounds larger objects up to, in bytes.
const pageSize = 8 << 10

func readSizeClasses() []int64 {
	sample := []metrics.Sample{{Name: "/gc/heap/allocs-by-size:bytes"}}
	metrics.Read(sample)
	var classes []int64
	for _, bound := range sample[0].Value.Float64Histogram().Buckets {
		// A bucket ends before the first size that is not in it.
		if bound > 1 && !math.IsInf(bound, 0) {
			classes = append(classes, int64(bound)-1)
		}
	}
	return classes
}

// SizeOf is what an allocation of n bytes takes of the heap.
func SizeOf[N int | int64 | uintptr](n N) int64 {
	size := int64(n)
	if size <= 0 {
		return 0
	}
	if i, _ := slices.BinarySearch(sizeClasses, size); i < len(sizeClasses) {
		return sizeClasses[i]
	}
	return (size + pageSize - 1) &^ (pageSize - 1)
}

// SizeOfPointers is SizeOf for what has pointers in it: if it is neither small nor large,
// where they are is noted in front of it.
func SizeOfPointers[N int | int64 | uintptr](n N) int64 {
	const small, header = 512, 8
	if largest := sizeClasses[len(sizeClasses)-1]; n <= small || int64(n)+header > largest {
		return SizeOf(n)
	}
	return SizeOf(n + header)
}
