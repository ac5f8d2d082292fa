package memory

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// mapFile maps a file of 64 KiB of the letter, privately.
func mapFile(t *testing.T, letter string) []byte {
	t.Helper()
	path := filepath.Join(t.TempDir(), letter)
	if err := os.WriteFile(path, []byte(strings.Repeat(letter, 64<<10)), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	b, err := unix.Mmap(int(f.Fd()), 0, 64<<10, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Munmap(b) })
	return b
}

// residentOf is how many bytes of the files with such a name are resident.
func residentOf(t *testing.T, name string) (n int64) {
	t.Helper()
	all, err := readSmaps()
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range all {
		if strings.HasSuffix(m.name, name) {
			n += m.rss
		}
	}
	return n
}

func TestPagesOfFilesAreUnmappedUnlessSomebodyChangedThem(t *testing.T) {
	same, changed := mapFile(t, "s"), mapFile(t, "c")
	changed[5000] = 'C' // as the dynamic linker does, or a debugger
	for _, b := range [][]byte{same, changed} {
		if err := unix.Mprotect(b, unix.PROT_READ); err != nil {
			t.Fatal(err)
		}
	}
	if same[5000] != 's' || residentOf(t, "/s") == 0 {
		t.Fatal("the file is not mapped")
	}
	n, err := unmapFiles()
	if err != nil {
		t.Fatal(err)
	}
	if got := residentOf(t, "/s"); got != 0 {
		t.Errorf("%d bytes of an unchanged file are resident", got)
	}
	if n < 64<<10 {
		t.Errorf("%d bytes are said to have been unmapped", n)
	}
	if same[5000] != 's' {
		t.Error("the file has other bytes than before")
	}
	if changed[5000] != 'C' {
		t.Error("what was changed is lost")
	}
}

func TestFilesAreUnmappedWhenALoadHasEased(t *testing.T) {
	const interval = 5 * time.Second
	w := watch{loaded: true}
	start := time.Now()
	var allocated uint64
	for second, c := range []struct {
		load, want bool
	}{
		{false, false}, {false, true}, {false, false}, // what the start needed
		{true, false}, {false, false}, {false, false}, {false, true}, // not twice within the interval
		{false, false}, {false, false}, {false, false},
		{true, false}, {false, false}, {true, false}, {false, false}, {false, true},
	} {
		if c.load {
			allocated += 10 * mib
		}
		now := start.Add(time.Duration(second) * time.Second)
		w.due(look{Heap: Heap{Allocated: allocated}}, now, mib, interval)
		got := w.outdated(now, interval)
		if got != c.want {
			t.Errorf("in second %d outdated = %v", second, got)
		}
		if got {
			w.unmapped(now)
		}
	}
}
