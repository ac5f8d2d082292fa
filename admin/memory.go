package admin

import (
	"unsafe"

	"github.com/pgebb/pgebb/internal/memory"
)

// Memory is what the console keeps.
func (c *Console) Memory() []memory.Holding {
	c.averages.mu.Lock()
	defer c.averages.mu.Unlock()
	n := int64(len(c.averages.before) + len(c.averages.change))
	return []memory.Holding{{
		Name: "averages", Doc: "counters of pools in the last period, for SHOW STATS", Items: n,
		Bytes: n * (int64(unsafe.Sizeof(Counters{})) + mapEntry),
	}}
}

// mapEntry is about what an entry of a map costs in bytes besides its value.
const mapEntry = 24
