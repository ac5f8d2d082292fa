// Package verdict is what a pooler must know of an SQL text: where it may run, and what
// it may leave behind in its session. It holds the words for that and nothing else, so
// that those who ask (package frontend) need not build what knows (package parser).
//
// [Verdict] is the answer, [Flags] most of it, [Needs] what the one who asks must know.
//
// The caveat that bites: a verdict errs on the safe side. A flag that is set may be set
// for nothing; one that is not set is certain, but for what functions, procedures and
// triggers do inside of the database.
package verdict

// Flags are the properties of an SQL text, of all its statements together.
type Flags uint32

const (
	// Write says that it must run on a primary: it writes, or locks rows, or cannot be
	// told not to.
	Write Flags = 1 << iota
	// Locking says that it has a locking clause, such as FOR UPDATE.
	Locking
	// Begin says that it opens a transaction block, and ReadOnly or ReadWrite that it
	// says of which kind.
	Begin
	ReadOnly
	ReadWrite
	// End says that it ends a transaction block, by COMMIT, END, ROLLBACK, ABORT or
	// PREPARE TRANSACTION.
	End
	// Savepoint is for SAVEPOINT, RELEASE and ROLLBACK TO.
	Savepoint
	// Several says that it has more than one statement.
	Several
	// Copy is for COPY, Show for SHOW, Notify for NOTIFY, Execute for EXECUTE of a
	// prepared statement.
	Copy
	Show
	Notify
	Execute

	// Settings says that run-time parameters of the session may change. Verdict.Settings
	// says which, unless Unnamed is set: then it says which may that have a dot in their name.
	Settings
	// Unnamed says that it is not known which: RESET ALL, DISCARD ALL, a name that is
	// computed, a text that is not understood.
	Unnamed
	// Authorization says that SET SESSION AUTHORIZATION may be among them.
	Authorization
	// Temp says that it may make a temporary relation, Hold a cursor WITH HOLD,
	// Prepare a prepared statement.
	Temp
	Hold
	Prepare
	// Lock says that it may take an advisory lock of the session, or give one back.
	Lock
	// Listen and Unlisten are for those statements.
	Listen
	Unlisten
	// Discard says that it drops all prepared statements: DISCARD ALL, DEALLOCATE ALL.
	Discard

	// Unknown says that it was not understood, be it too large, too deeply nested or not
	// SQL; what the flags say then is what can be told from its words.
	Unknown

	// Primary and Replica say that a comment of it names that role (pgdog_role).
	Primary
	Replica
)

// Session is every flag that says that something may be left in the session.
const Session = Settings | Authorization | Temp | Hold | Prepare | Lock | Listen

// Any is the verdict on a text of which nothing is known.
const Any = Write | Settings | Unnamed | Authorization | Temp | Hold | Prepare | Lock | Unknown

// Verdict is what is known of an SQL text. What it refers to must not be changed.
type Verdict struct {
	Flags    Flags
	Settings []Setting // in their order
}

// Setting is the change of one run-time parameter, by SET, RESET or set_config.
type Setting struct {
	Name  string // in lower case
	Value string // as set_config takes it, if it is known
	Local bool   // until the end of the transaction
	Reset bool   // to the default of the session
	Known bool   // Value is the value
}

// Has reports whether any of the given flags is set.
func (v Verdict) Has(f Flags) bool { return v.Flags&f != 0 }

// Needs is what the one who asks must know. What is not needed may be answered on the
// safe side, which is cheaper.
type Needs uint8

const (
	// State is whether session state may change.
	State Needs = 1 << iota
	// Locks is whether advisory locks of the session may be taken.
	Locks
	// Routing is whether the text may run on a replica.
	Routing
	// Tree asks for the text to be parsed in any case.
	Tree
)
