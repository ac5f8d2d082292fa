package memory

import (
	"errors"
	"fmt"
	"reflect"
	"strings"

	"golang.org/x/sys/unix"
)

// unmapFiles takes the pages of the program's file out of the process, and returns how many
// bytes they were. They stay in the system's cache, and those that are still needed come
// back with a minor fault for each sixteen of them; the rest is what only the start or a load
// that is over needed.
//
// Pages that somebody changed would be lost, so a mapping that has any is left alone: what
// the dynamic linker filled in, and the code while a debugger has breakpoints in it. So are
// all other files: a library may go, and something else be at its address by the time that
// the system is told to drop what is there.
func unmapFiles() (int64, error) {
	all, err := readSmaps()
	if err != nil {
		return 0, fmt.Errorf("looking for the program's file: %w", err)
	}
	var unmapped int64
	var errs []error
	for _, m := range programOf(all, uint64(reflect.ValueOf(unmapFiles).Pointer())) {
		if !m.unchangedFile() || m.rss == 0 {
			continue
		}
		if err := advise(m, unix.MADV_DONTNEED); err != nil {
			errs = append(errs, fmt.Errorf("unmapping %s: %w", m.name, err))
			continue
		}
		unmapped += m.rss
	}
	return unmapped, errors.Join(errs...)
}

// programOf is the mapping with an address in the program's code, and those of the same file that
// adjoin it: they are there from the start to the end.
func programOf(all []mapping, code uint64) []mapping {
	for i, m := range all {
		if code < m.start || code >= m.end {
			continue
		}
		first, last := i, i+1
		for first > 0 && all[first-1].end == all[first].start && all[first-1].name == m.name {
			first--
		}
		for last < len(all) && all[last].start == all[last-1].end && all[last].name == m.name {
			last++
		}
		return all[first:last]
	}
	return nil
}

// unchangedFile tells if the mapping is of a file that the process only reads, and has no
// page that differs from the file.
func (m *mapping) unchangedFile() bool {
	return strings.HasPrefix(m.name, "/") && strings.HasPrefix(m.perms, "r") && m.perms[1] == '-' && m.anonymous == 0
}

// advise is madvise(2) for memory that is not Go's, of which there is no slice.
func advise(m mapping, advice uintptr) error {
	_, _, errno := unix.Syscall(unix.SYS_MADVISE, uintptr(m.start), uintptr(m.end-m.start), advice)
	if errno != 0 {
		return errno
	}
	return nil
}
