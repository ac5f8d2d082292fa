package frontend

import (
	"time"

	"github.com/pgebb/pgebb/backend"
)

// Snapshot is a client as it was when its loop was asked. Times are in [loop.Now].
type Snapshot struct {
	ID                               uint64
	User, Database, Addr             string
	Port                             int
	State                            string // as the console names it
	Connected, LastChange            time.Duration
	Queries, Transactions            uint64
	Wait, QueryTime, TransactionTime time.Duration
	Received, Sent, Errors           uint64
	ApplicationName                  string
	Locked                           bool // it keeps its server between transactions
	PreparedStatements               int  // with a name
	LocalAddr                        string
	LocalPort                        int
	Encryption                       string // see [loop.Conn.Encryption]
	Pending                          int    // bytes that wait to be sent to it
}

// Count is the number of clients that are logged in.
func (f *Frontend) Count() int { return f.keys.count() }

// Clients returns all clients. It must not be called on a loop.
func (f *Frontend) Clients() []Snapshot {
	var all []Snapshot
	f.eachClient(func(c *Client) { all = append(all, c.snapshot()) })
	return all
}

func (c *Client) snapshot() Snapshot {
	set := c.pool.Settings()
	s := Snapshot{
		ID: c.id, User: set.User, Database: set.Database, State: c.stateName(), Connected: c.totals.connected, LastChange: c.mark,
		Queries: c.totals.queries, Transactions: c.totals.transactions, Wait: c.totals.wait, QueryTime: c.totals.queryTime,
		TransactionTime: c.totals.xactTime, Received: c.totals.received, Sent: c.totals.sent, Errors: c.totals.errors,
		Locked: c.server != nil && c.server.Settled(),
	}
	if c.prepared != nil {
		s.PreparedStatements = c.prepared.len()
	}
	s.Addr, s.Port = c.RemoteAddr()
	s.LocalAddr, s.LocalPort = c.LocalAddr()
	s.Encryption, s.Pending = c.Encryption(), c.Pending()
	s.ApplicationName, _ = c.params.Get("application_name")
	return s
}

func (c *Client) stateName() string {
	switch c.state {
	case stateIdle:
		return backend.StateIdle
	case stateWaiting, stateStarting:
		return "waiting"
	case stateActive:
		if c.server.Settled() {
			return backend.StateIdle
		}
		return c.server.State()
	case stateLeaving, stateGone:
		return "disconnected"
	}
	return backend.StateActive
}
