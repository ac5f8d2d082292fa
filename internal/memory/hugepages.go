package memory

import "golang.org/x/sys/unix"

// AllowHugePages lets the process have transparent huge pages, or not. With them a heap
// that is mostly empty can stay resident as a whole.
//
// A program with this package in it starts without them, where it can use C.
func AllowHugePages(allow bool) error {
	var disable uintptr = 1
	if allow {
		disable = 0
	}
	return unix.Prctl(unix.PR_SET_THP_DISABLE, disable, 0, 0, 0)
}
