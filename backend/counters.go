package backend

import (
	"bytes"
	"reflect"

	"github.com/pgebb/pgebb/internal/wire"
)

// Counters count what happened in one pool on one loop; only that loop writes
// them. Times are in nanoseconds.
type Counters struct {
	Transactions, Queries, Checkouts           uint64
	Received, Sent                             uint64 // bytes from and to clients
	TransactionTime, IdleTransactionTime       uint64
	QueryTime, WaitTime                        uint64
	Errors                                     uint64 // ErrorResponses to what clients asked for
	Rollbacks, Cleaned                         uint64 // of and after clients that left something behind
	Connects, ConnectFailures, ConnectTime     uint64
	AuthAttempts                               uint64 // logins at Postgres, one for each password that was tried
	ParseMessages, BindMessages, CloseMessages uint64 // sent to Postgres
	RowsInserted, RowsUpdated, RowsDeleted     uint64
	Reads, Writes                              uint64 // commands
	Resynced                                   uint64 // servers that were left in the middle of something, and brought to its end
	OutOfSync                                  uint64 // those that were closed because that was not possible, or not to be
	ForceClosed                                uint64 // servers that were closed while Postgres was at work
	Lost                                       uint64 // servers whose connection ended without our doing
	CheckoutTimeouts                           uint64
	Logins                                     uint64 // of clients
	ClientParses                               uint64 // Parse messages of clients, answered here or sent to Postgres
	Evictions                                  uint64 // prepared statements that servers were told to close

	// How long clients waited for a server, at each checkout; how long Postgres took for
	// what it was asked, up to when all was answered; how long transactions took, logins of
	// clients, and those connections to servers that were made.
	WaitTimes, QueryTimes, TransactionTimes, LoginTimes, ConnectTimes Histogram
}

// Add adds other counters to these.
func (c *Counters) Add(other *Counters) {
	addUp(reflect.ValueOf(c).Elem(), reflect.ValueOf(other).Elem())
}

func addUp(sum, part reflect.Value) {
	switch sum.Kind() {
	case reflect.Struct:
		for i := range sum.NumField() {
			addUp(sum.Field(i), part.Field(i))
		}
	case reflect.Array:
		for i := range sum.Len() {
			addUp(sum.Index(i), part.Index(i))
		}
	default:
		sum.SetUint(sum.Uint() + part.Uint())
	}
}

// Totals count what one server did.
type Totals struct {
	Transactions, Queries, Rollbacks, Errors uint64
	Checks                                   uint64 // health checks
	Received, Sent                           uint64 // bytes from and to Postgres
	LastSent, LastReceived                   byte   // message types
}

// command counts a command by its tag in a CommandComplete: what reads, what writes, and
// how many rows were written. fromClient says that it was a COPY whose rows the client has
// sent. Tags are those of Postgres:
// https://www.postgresql.org/docs/current/protocol-message-formats.html
func (c *Counters) command(tag []byte, fromClient bool) {
	name, rest, _ := bytes.Cut(tag, []byte(" "))
	switch string(name) { // no copy is made of it
	case "SELECT", "FETCH":
		c.Reads++
	case "INSERT":
		c.Writes++
		_, rows, _ := bytes.Cut(rest, []byte(" ")) // behind an OID that is always 0
		c.RowsInserted += count(rows)
	case "UPDATE":
		c.Writes++
		c.RowsUpdated += count(rest)
	case "DELETE":
		c.Writes++
		c.RowsDeleted += count(rest)
	case "MERGE":
		c.Writes++ // its tag does not say how many rows it has inserted, and how many updated
	case "COPY":
		if fromClient {
			c.Writes++
			c.RowsInserted += count(rest)
		} else {
			c.Reads++
		}
	}
}

// count reads the number at the start of b, 0 if there is none. It does not overflow: a
// server that says nonsense is counted as 0.
func count(b []byte) (n uint64) {
	for i, digit := range b {
		if digit < '0' || digit > '9' {
			break
		}
		if i == 18 {
			return 0
		}
		n = n*10 + uint64(digit-'0')
	}
	return n
}

// sent counts a message that has to do with statements and portals, as it is queued for
// its answer; what is answered here is not sent.
func (c *Counters) sent(op byte) {
	switch op {
	case wire.Parse:
		c.ParseMessages++
		c.ClientParses++ // as the client has sent it
	case opParse, opInjected, opUnnamed, opRedefine, opCarrierParse:
		c.ParseMessages++
	case wire.Bind, opBind, opCarrierBind:
		c.BindMessages++
	case wire.Close, opEvicted, opCarrierClose:
		c.CloseMessages++
	}
}
