//go:build !race

package parser

import (
	"fmt"
	"testing"
)

// The race detector makes this twenty times as slow, and the memory it takes twice as much.
func TestNothingCrashesAJudge(t *testing.T) {
	for _, stack := range []int{128, 8192} {
		t.Run(fmt.Sprint(stack), func(t *testing.T) {
			// Most of it is what the texts themselves take.
			if kib := inChild(t, "judge", stack); kib > 150<<10 {
				t.Errorf("it took %d KiB", kib)
			}
		})
	}
}
