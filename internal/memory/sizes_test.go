package memory

import "testing"

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
