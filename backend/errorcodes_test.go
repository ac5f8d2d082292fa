package backend

import (
	"fmt"
	"testing"
)

func TestErrorCodesAreCountedUpToALimit(t *testing.T) {
	var e ErrorCodes
	e.Count([]byte("42601"))
	e.Count([]byte("42601"))
	e.Count(nil)
	for i := range 2 * maxCodes {
		e.Count(fmt.Appendf(nil, "P%04d", i))
	}
	counts := e.Counts()
	if counts["42601"] != 2 || counts["P0000"] != 1 || counts[OtherCode] < maxCodes || len(counts) > maxCodes+1 {
		t.Errorf("of %d codes, 42601 was counted %d times, P0000 %d, others %d", len(counts), counts["42601"], counts["P0000"], counts[OtherCode])
	}
}
