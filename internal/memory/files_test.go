package memory

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func TestThePagesOfTheProgramAreUnmappedAndNobodyElses(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, make([]byte, 64<<10), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	other, err := unix.Mmap(int(f.Fd()), 0, 64<<10, unix.PROT_READ, unix.MAP_PRIVATE|unix.MAP_POPULATE)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = unix.Munmap(other) }()
	n, err := unmapFiles()
	if err != nil {
		t.Fatal(err)
	}
	if n < 256<<10 {
		t.Errorf("%d bytes of the program were resident", n)
	}
	all, err := readSmaps()
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(all, func(m mapping) bool { return m.name == path })
	if i < 0 || all[i].rss != 64<<10 {
		t.Error("pages of another file are not resident any more")
	}
}

func TestWhatIsUnmappedIsTheProgramWhereNobodyChangedIt(t *testing.T) {
	all := []mapping{
		{start: 0x1000, end: 0x2000, perms: "r--p", name: "/bin/pgebb"},
		{start: 0x5000, end: 0x6000, perms: "r--p", name: "/lib/other"},
		{start: 0x6000, end: 0x7000, perms: "r--p", name: "/bin/pgebb"},
		{start: 0x7000, end: 0x8000, perms: "r-xp", name: "/bin/pgebb"},
		{start: 0x8000, end: 0x9000, perms: "r--p", name: "/bin/pgebb", anonymous: 4096},
		{start: 0x9000, end: 0xa000, perms: "rw-p", name: "/bin/pgebb"},
		{start: 0xa000, end: 0xb000, perms: "rw-p"},
	}
	var got []uint64
	for _, m := range programOf(all, 0x7800) {
		if m.unchangedFile() {
			got = append(got, m.start)
		}
	}
	if want := []uint64{0x6000, 0x7000}; !slices.Equal(got, want) {
		t.Errorf("mappings at %x are unmapped, want %x", got, want)
	}
	if programOf(all, 0x3000) != nil {
		t.Error("a program is found where there is none")
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
