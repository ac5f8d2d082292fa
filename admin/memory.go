package admin

import (
	"unsafe"

	"github.com/pgebb/pgebb/internal/memory"
)

// ConnMemory is a line of SHOW CLIENT MEMORY or SHOW SERVER MEMORY, in bytes.
type ConnMemory struct {
	ID                   uint64 // of the client, or of the server's pool
	Database, User, Addr string
	Port                 int
	PID                  uint32 // of the server process
	Used, Allocated      int64  // in buffers
	Statements           int64
	Total                int64
}

// MemorySource is where the console gets what it shows of memory.
type MemorySource interface {
	MemoryAccount() (memory.Account, error)
	ClientMemory() []ConnMemory
	ServerMemory() []ConnMemory
}

// memoryColumns are the columns that both have behind who it is about.
var memoryColumns = numeric("buffer_reallocs", "buffer_reclaims", "buffer_bytes_used", "buffer_bytes_alloc", "prepared_statements_bytes", "net_buffer_bytes", "total_bytes")

const memoryDoc = " total_bytes is all that is kept for it now, itself included. No buffer is kept between requests, so there are no buffer_reallocs, buffer_reclaims and net_buffer_bytes."

// memoryCommands are those about memory.
func memoryCommands() []Command {
	return []Command{
		{
			Names: []string{"SHOW MEMORY"}, Doc: "What the resident pages of the process are, as a tree; rss/unaccounted is what nothing explains.",
			Columns: concat(text("name"), numeric("bytes", "limit", "items"), text("description")),
			Dialect: both, ReadOnly: true, run: showMemory,
		},
		{
			Names: []string{"SHOW SERVER MEMORY"}, Doc: "One line for each server: what is kept for it." + memoryDoc,
			Columns: concat(bigint("pool_id"), text("database", "user", "addr"), numeric("port", "remote_pid"), memoryColumns),
			Dialect: both, ReadOnly: true, run: showServerMemory,
		},
		{
			Names: []string{"SHOW CLIENT MEMORY"}, Doc: "One line for each client: what is kept for it." + memoryDoc,
			Columns: concat(bigint("client_id"), text("database", "user", "addr"), numeric("port"), memoryColumns),
			Dialect: both, ReadOnly: true, run: showClientMemory,
		},
	}
}

func showMemory(r *request) ([][]*string, error) {
	account, err := r.src.Memory.MemoryAccount()
	if err != nil {
		return nil, err
	}
	var rows [][]*string
	for _, l := range account.Lines {
		var limit, items any
		if l.Limit != 0 {
			limit = l.Limit
		}
		if l.Items != 0 || l.Parent() == "rss/ledger" {
			items = l.Items
		}
		rows = append(rows, row(l.Name, l.Bytes, limit, items, l.Doc))
	}
	return rows, nil
}

func showServerMemory(r *request) ([][]*string, error) {
	var rows [][]*string
	for _, m := range r.src.Memory.ServerMemory() {
		rows = append(rows, append(row(m.ID, m.Database, m.User, m.Addr, m.Port, uint64(m.PID)), m.values()...))
	}
	return rows, nil
}

func showClientMemory(r *request) ([][]*string, error) {
	var rows [][]*string
	for _, m := range r.src.Memory.ClientMemory() {
		rows = append(rows, append(row(m.ID, m.Database, m.User, m.Addr, m.Port), m.values()...))
	}
	return rows, nil
}

func (m ConnMemory) values() []*string {
	return row(0, 0, m.Used, m.Allocated, m.Statements, 0, m.Total)
}

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
