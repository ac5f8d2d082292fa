package memory

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"unsafe"
)

// Resident is which pages of the process are in memory, in bytes.
type Resident struct {
	Total     int64
	File      int64 // of files: the program itself; the system can drop them at any time
	Heap      int64 // of Go's heap
	Static    int64 // of the program's variables, and the main thread's stack
	Rest      int64 // of everything else: the runtime's own data, and C's heap
	HugePages int64 // of all of the above, those in transparent huge pages
}

// Anonymous is what is of no file.
func (r Resident) Anonymous() int64 { return r.Total - r.File }

// mapping is an entry of /proc/self/smaps.
type mapping struct {
	start, end           uint64
	perms                string // as "r-xp"
	name                 string
	rss, anonymous, huge int64
}

// ReadResident reads /proc/self/smaps. The system walks the page tables for it, which
// takes about a millisecond for each 500 MiB, and does not stop the program.
func ReadResident() (Resident, error) {
	all, err := readSmaps()
	if err != nil {
		return Resident{}, fmt.Errorf("reading which pages are resident: %w", err)
	}
	// The arenas of the heap are next to each other, reserved parts included.
	return classify(all, uint64(uintptr(unsafe.Pointer(heapObject)))), nil
}

func readSmaps() ([]mapping, error) {
	f, err := os.Open("/proc/self/smaps")
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return parseSmaps(f)
}

// heapObject is in the heap; constant.
var heapObject = new([64]byte)

func parseSmaps(r io.Reader) ([]mapping, error) {
	all := make([]mapping, 0, 64)
	scanner := bufio.NewScanner(r)
	scanner.Buffer(make([]byte, 8<<10), 8<<10)
	for scanner.Scan() {
		line := scanner.Bytes()
		first, rest, _ := bytes.Cut(line, []byte(" "))
		if key, ok := bytes.CutSuffix(first, []byte(":")); ok && len(all) > 0 {
			all[len(all)-1].set(key, rest)
			continue
		}
		from, to, _ := bytes.Cut(first, []byte("-"))
		var m mapping
		var err1, err2 error
		m.start, err1 = strconv.ParseUint(string(from), 16, 64)
		m.end, err2 = strconv.ParseUint(string(to), 16, 64)
		if err := errors.Join(err1, err2); err != nil {
			return nil, fmt.Errorf("smaps says %q: %w", line, err)
		}
		// Behind the addresses are the permissions and three more fields, then the name.
		fields := bytes.Fields(rest)
		if len(fields) < 4 || len(fields[0]) != len("rwxp") {
			return nil, fmt.Errorf("smaps says %q", line)
		}
		m.perms = string(fields[0])
		if len(fields) > 4 {
			m.name = string(fields[4])
		}
		all = append(all, m)
	}
	return all, scanner.Err()
}

// set takes over a field that matters.
func (m *mapping) set(key, value []byte) {
	var field *int64
	switch string(key) {
	case "Rss":
		field = &m.rss
	case "Anonymous":
		field = &m.anonymous
	case "AnonHugePages":
		field = &m.huge
	default:
		return
	}
	kb, _, _ := bytes.Cut(bytes.TrimSpace(value), []byte(" "))
	n, _ := strconv.ParseInt(string(kb), 10, 64) // the system writes numbers
	*field = n << 10
}

// classify sums mappings up, in the order of their addresses; object is an address in the
// heap.
func classify(all []mapping, object uint64) Resident {
	first, last := heapRange(all, object)
	var r Resident
	static := false // the mappings without a name behind those of the program are its variables
	for i, m := range all {
		r.Total += m.rss
		r.File += m.rss - m.anonymous
		r.HugePages += m.huge
		adjacent := i > 0 && all[i-1].end == m.start
		static = strings.HasPrefix(m.name, "/") && m.anonymous > 0 || m.name == "[stack]" || static && adjacent && m.name == ""
		switch {
		case i >= first && i < last:
			r.Heap += m.anonymous
		case static:
			r.Static += m.anonymous
		default:
			r.Rest += m.anonymous
		}
	}
	return r
}

// heapRange is all[first:last], the mapping with an address and what adjoins it.
func heapRange(all []mapping, object uint64) (first, last int) {
	for i, m := range all {
		if object < m.start || object >= m.end {
			continue
		}
		first, last = i, i+1
		for first > 0 && all[first-1].end == all[first].start && all[first-1].name == "" {
			first--
		}
		for last < len(all) && all[last].start == all[last-1].end && all[last].name == "" {
			last++
		}
	}
	return first, last
}
