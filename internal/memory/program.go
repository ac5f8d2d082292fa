package memory

import (
	"os"

	"golang.org/x/sys/unix"
)

// releaseProgram takes the pages of the program's code and constants out of the resident
// set. They stay in the system's cache of files, from which what is needed comes back
// without being read. Much of what is touched only the start needs.
//
// Mappings of which a page is not as it is in the file are left alone: what the linker has
// put there would be lost, although nobody can write to it any more.
func releaseProgram() {
	self, err := os.Readlink("/proc/self/exe")
	if err != nil {
		return
	}
	all, err := readSmaps()
	if err != nil {
		return
	}
	for _, m := range all {
		if m.name == self && !m.writable && m.anonymous == 0 {
			// It fails for a mapping that is locked, which then just stays.
			_, _, _ = unix.Syscall(unix.SYS_MADVISE, uintptr(m.start), uintptr(m.end-m.start), unix.MADV_DONTNEED)
		}
	}
}
