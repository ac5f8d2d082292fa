package memory

import (
	"os"
	"path/filepath"
	"testing"
)

func TestCgroupsOfBothVersionsAreRead(t *testing.T) {
	for name, c := range map[string]struct {
		files map[string]string
		want  Cgroup
	}{
		"version 2, the limit of a group around it": {
			map[string]string{
				"proc/self/cgroup": "0::/a/b\n", "sys/fs/cgroup/a/b/memory.current": "1000\n", "sys/fs/cgroup/a/b/memory.max": "max\n",
				"sys/fs/cgroup/a/memory.max": "5000\n", "sys/fs/cgroup/a/memory.current": "3000\n",
			},
			Cgroup{1000, 5000},
		},
		"version 2 in a container": {
			map[string]string{"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/memory.current": "1\n", "sys/fs/cgroup/memory.max": "2\n"},
			Cgroup{1, 2},
		},
		"version 1, the path of the host": {
			map[string]string{
				"proc/self/cgroup":                                 "9:cpu:/x\n4:memory:/docker/1\n0::/\n",
				"sys/fs/cgroup/memory/memory.usage_in_bytes":       "7\n",
				"sys/fs/cgroup/memory/memory.limit_in_bytes":       "9\n",
				"sys/fs/cgroup/cpu/docker/1/memory.limit_in_bytes": "1\n",
			},
			Cgroup{7, 9},
		},
		"version 1 without a limit": {
			map[string]string{
				"proc/self/cgroup":                           "4:memory:/\n",
				"sys/fs/cgroup/memory/memory.usage_in_bytes": "7\n", "sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n",
			},
			Cgroup{7, 0},
		},
		"none": {nil, Cgroup{}},
	} {
		root := t.TempDir()
		for file, text := range c.files {
			path := filepath.Join(root, file)
			if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if got := readCgroup(root); got != c.want {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
}
