//go:build cgo

package memory

/*
#include <sys/prctl.h>

// Before the Go runtime makes its heap: with huge pages set to always, its first pages would
// be huge ones, and stay resident as a whole with what is never used of them.
__attribute__((constructor)) static void pgebb_no_huge_pages(void) {
	prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0);
}
*/
import "C"
