package memory

import (
	"runtime"
	"testing"
)

// TestSizesAreThoseOfTheAllocator asks it: what append makes is as large as its class.
func TestSizesAreThoseOfTheAllocator(t *testing.T) {
	for n := 1; n < 100_000; n += 1 + n/17 {
		if got := cap(append([]byte(nil), make([]byte, n)...)); SizeOf(n) != int64(got) {
			t.Errorf("an allocation of %d bytes takes %d, SizeOf says %d", n, got, SizeOf(n))
		}
	}
	if SizeOf(0) != 0 {
		t.Error("nothing takes something")
	}
}

// pointers is where the test below has the allocator put what it asks for.
var pointers []*byte

// TestSizesOfPointersAreThoseOfTheAllocator asks the runtime how many objects of the size it
// has made.
func TestSizesOfPointersAreThoseOfTheAllocator(t *testing.T) {
	const times = 100
	made := func(size int64) uint64 {
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		for _, class := range m.BySize {
			if int64(class.Size) == size {
				return class.Mallocs
			}
		}
		t.Fatalf("there is no class of %d bytes", size)
		return 0
	}
	for n := 2; n < 2300; n += 1 + n/17 {
		size := SizeOfPointers(n * 8)
		before := made(size)
		for range times {
			pointers = make([]*byte, n)
		}
		if got := made(size) - before; got < times {
			t.Errorf("SizeOfPointers says that %d pointers take %d bytes, but of %d such objects %d were made", n, size, times, got)
		}
	}
	pointers = nil
}
