package memory

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// Cgroup is what the control group of the process uses and may use, in bytes. Usage is
// of all processes in it, with cached files. Both are 0 if they are not known.
type Cgroup struct {
	Usage int64
	Limit int64 // 0 for none; the least of the group's and of those around it
}

// unlimited is from where on a limit of version 1 means that there is none: that is the
// largest multiple of a page.
const unlimited = 1 << 60

// ReadCgroup reads version 2's files, or version 1's.
func ReadCgroup() Cgroup { return readCgroup("/") }

// readCgroup reads below another root, for tests.
func readCgroup(root string) Cgroup {
	b, err := os.ReadFile(filepath.Join(root, "proc/self/cgroup"))
	if err != nil {
		return Cgroup{}
	}
	var c Cgroup
	for line := range strings.Lines(string(b)) {
		parts := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(parts) != 3 {
			continue
		}
		switch {
		case parts[0] == "0" && parts[1] == "":
			c = c.or(walk(filepath.Join(root, "sys/fs/cgroup"), parts[2], "memory.current", "memory.max"))
		case has(parts[1], "memory"):
			c = c.or(walk(filepath.Join(root, "sys/fs/cgroup/memory"), parts[2], "memory.usage_in_bytes", "memory.limit_in_bytes"))
		}
	}
	return c
}

func has(list, word string) bool {
	for w := range strings.SplitSeq(list, ",") {
		if w == word {
			return true
		}
	}
	return false
}

// or keeps what is known already.
func (c Cgroup) or(o Cgroup) Cgroup {
	if c.Usage == 0 {
		c.Usage = o.Usage
	}
	if c.Limit == 0 {
		c.Limit = o.Limit
	}
	return c
}

// walk looks at a group and those around it. In a container the path may be that of the
// host, where there is only the root.
func walk(mount, path, usage, limit string) Cgroup {
	var c Cgroup
	for {
		dir := filepath.Join(mount, path)
		if n, ok := number(filepath.Join(dir, usage)); ok && c.Usage == 0 {
			c.Usage = n
		}
		if n, ok := number(filepath.Join(dir, limit)); ok && n < unlimited && (c.Limit == 0 || n < c.Limit) {
			c.Limit = n
		}
		if path == "/" || path == "." || path == "" {
			return c
		}
		path = filepath.Dir(path)
	}
}

// number reads a file with one; "max" is none.
func number(file string) (int64, bool) {
	b, err := os.ReadFile(file)
	if err != nil {
		return 0, false
	}
	n, err := strconv.ParseInt(strings.TrimSpace(string(b)), 10, 64)
	return n, err == nil && n > 0
}
