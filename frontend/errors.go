package frontend

import (
	"fmt"
	"strings"
	"time"

	"github.com/pgebb/pgebb/backend"
	"github.com/pgebb/pgebb/internal/scram"
)

// Severities of an ErrorResponse, in the words of Postgres. After a FATAL the
// connection is closed; after an ERROR the client goes on.
const (
	severityError = "ERROR"
	severityFatal = "FATAL"
)

// Errors of the login.

// errProtocol is for bytes that no client may legally send.
func errProtocol(format string, args ...any) *Error {
	return &Error{Severity: severityFatal, Code: "08P01", Message: fmt.Sprintf(format, args...)}
}

// errProtocolVersion is for a major version other than 3.
func errProtocolVersion(major, minor uint16) *Error {
	return &Error{
		Severity: severityFatal, Code: "0A000",
		Message: fmt.Sprintf("unsupported frontend protocol %d.%d: pgebb supports 3.0 to 3.2", major, minor),
	}
}

// errUnencryptedData is for bytes that come before the handshake they must wait for, in
// the words of Postgres.
func errUnencryptedData() *Error {
	return &Error{
		Severity: severityFatal, Code: "08P01", Message: "received unencrypted data after SSL request",
		Detail: "This could be either a client-software bug or evidence of an attempted man-in-the-middle attack.",
	}
}

// errNoALPN is for a client that starts with TLS at once and does not say for which
// protocol: that could be another's.
func errNoALPN() *Error {
	return &Error{
		Severity: severityFatal, Code: "08P01",
		Message: "received direct SSL connection request without ALPN protocol negotiation extension",
	}
}

// errTLSRequired is for a client without TLS where that is required, in the words of
// PgDog.
func errTLSRequired() *Error {
	return &Error{
		Severity: severityFatal, Code: "08004", Message: "only TLS connections are allowed",
		Hint: "Connect with sslmode=require, or stricter.",
	}
}

// errNoUser is for a StartupMessage without a user, in the words of Postgres.
func errNoUser() *Error {
	return &Error{
		Severity: severityFatal, Code: "28000",
		Message: "no PostgreSQL user name specified in startup packet",
	}
}

// errAuthFailed is given for a wrong password and for an unknown user alike; only the log has
// the cause.
func errAuthFailed(user, cause string) *Error {
	return &Error{
		Severity: severityFatal, Code: "28P01", Cause: cause,
		Message: fmt.Sprintf("password authentication failed for user %q", user),
	}
}

// errNoCertificate is for a client that must show a certificate, in the words of Postgres.
func errNoCertificate() *Error {
	return &Error{
		Severity: severityFatal, Code: "28000", Message: "connection requires a valid client certificate",
		Hint: "Connect with TLS and with a certificate (sslcert, sslkey) of an authority in tls_client_ca_certificate.",
	}
}

// errLookUp is for a user whose password Postgres could not be asked for.
func errLookUp(reason error) *Error {
	return &Error{
		Severity: severityFatal, Code: "58000", Message: "the user could not be looked up in Postgres", Private: reason.Error(),
		Hint: "See auth_user, auth_password and auth_query in pgdog.toml.",
	}
}

// errVault is for a user whose password Vault could not be asked for.
func errVault(reason error) *Error {
	return &Error{
		Severity: severityFatal, Code: "58000", Message: "the user's password could not be fetched", Private: reason.Error(),
		Hint: "See vault_path in users.toml and [vault] in pgdog.toml.",
	}
}

// errTooManyUsers is for one user too many of those that are in no file.
func errTooManyUsers() *Error {
	return &Error{
		Severity: severityFatal, Code: "53400", Message: "too many users",
		Detail: fmt.Sprintf("pgebb keeps pools for %d users that are not in users.toml.", maxLearned),
		Hint:   "Put those that are needed for long into users.toml.",
	}
}

// errEmptyPassword is for a client that sends a password of no characters, which no user
// has, in the words of Postgres.
func errEmptyPassword() *Error {
	return &Error{Severity: severityFatal, Code: "28P01", Message: "empty password returned by client"}
}

// errNoDatabase is given after authentication, as Postgres does.
func errNoDatabase(database string) *Error {
	return &Error{
		Severity: severityFatal, Code: "3D000",
		Message: fmt.Sprintf("database %q does not exist", database),
		Private: "no [[databases]] entry has this name",
	}
}

// errNotPermitted is for a user who exists but not for this database.
func errNotPermitted(user, database string) *Error {
	return &Error{
		Severity: severityFatal, Code: "28000",
		Message: fmt.Sprintf("user %q may not use database %q", user, database),
		Private: "no [[users]] entry pairs this user with this database",
	}
}

// errDisabled is for a database that the operator takes out of service, in the words of
// PgBouncer.
func errDisabled(database string) *Error {
	return &Error{Severity: severityFatal, Code: "55000", Message: fmt.Sprintf("database %q is disabled", database)}
}

// errKilled closes clients that the operator wants to be gone, in the words of Postgres.
func errKilled() *Error {
	return &Error{Severity: severityFatal, Code: "57P01", Message: "terminating connection due to administrator command"}
}

// errReplication is for a client that asks for a walsender.
func errReplication() *Error {
	return &Error{
		Severity: severityFatal, Code: "0A000",
		Message: "replication connections are not supported through pgebb",
		Hint:    "Connect to Postgres directly for replication.",
	}
}

// Errors of the checkout and of limits.

// errCheckoutTimeout says which pool was exhausted and at what limits.
func errCheckoutTimeout(severity, user, database string, timeout time.Duration, size int) *Error {
	return &Error{
		Severity: severity, Code: "58000",
		Message: "checkout timeout",
		Detail: fmt.Sprintf("No server of the pool for user %q and database %q became free within checkout_timeout (%d ms); the pool size is %d.",
			user, database, timeout.Milliseconds(), size),
		Hint: "Raise default_pool_size or checkout_timeout, or shorten transactions.",
	}
}

// errQueryTimeout closes the client and its server.
func errQueryTimeout(timeout time.Duration) *Error {
	return &Error{
		Severity: severityFatal, Code: "58000", Message: "query timeout",
		Detail: fmt.Sprintf("query_timeout of %dms expired", timeout.Milliseconds()),
	}
}

// errClientIdle closes a client that sent nothing for too long.
func errClientIdle(timeout time.Duration) *Error {
	return &Error{
		Severity: severityFatal, Code: "57P05", Message: "disconnecting idle client",
		Detail: fmt.Sprintf("client_idle_timeout of %dms expired", timeout.Milliseconds()),
	}
}

// errClientIdleInTransaction closes a client that left a transaction open.
func errClientIdleInTransaction(timeout time.Duration) *Error {
	return &Error{
		Severity: severityFatal, Code: "57P05", Message: "disconnecting idle in transaction client",
		Detail: fmt.Sprintf("client_idle_in_transaction_timeout of %dms expired", timeout.Milliseconds()),
	}
}

// errClientIdleInMessage closes a client that holds a server and does not go on with its message.
func errClientIdleInMessage(timeout time.Duration) *Error {
	return &Error{
		Severity: severityFatal, Code: "57P05", Message: "disconnecting client that has sent only a part of its message",
		Detail: fmt.Sprintf("client_idle_in_transaction_timeout of %dms expired", timeout.Milliseconds()),
	}
}

// errCancelled answers a request that was cancelled while it waited for a
// server, in the words of Postgres.
func errCancelled() *Error {
	return &Error{
		Severity: severityError, Code: "57014", Message: "canceling statement due to user request",
		Detail: "The request was still waiting for a server; nothing of it was executed.",
	}
}

// errShutdown closes clients while pgebb drains.
func errShutdown() *Error {
	return &Error{Severity: severityFatal, Code: "57P01", Message: "pgebb is shutting down"}
}

// errServerLost is for a server that went away in the middle of a request.
func errServerLost(reason string) *Error {
	return &Error{
		Severity: severityFatal, Code: "08006", Message: "the server closed the connection unexpectedly",
		Private: reason,
	}
}

// errServerUnavailable is for a server that cannot be reached or that does
// not let us in without an ErrorResponse of its own.
func errServerUnavailable(reason string) *Error {
	return &Error{
		Severity: severityFatal, Code: "08006", Message: "the server is unavailable",
		Private: reason,
	}
}

// errServerLogin is for a Postgres that does not let us in, as for a wrong password: its
// words would look as if they were about the client's own.
func errServerLogin(code, reason string) *Error {
	return &Error{
		Severity: severityFatal, Code: code, Message: "the pooler's login to Postgres failed",
		Hint:    "This is not about the password that you gave: the operator of the pooler has to see to it.",
		Private: reason,
	}
}

// errNoCredentials is for servers whose credentials are in no file (server_auth) and could
// not be fetched.
func errNoCredentials(reason string) *Error {
	return &Error{
		Severity: severityFatal, Code: "58000", Message: "the pooler has no credentials for Postgres",
		Hint:    "This is not about the password that you gave: the operator of the pooler has to see to it.",
		Private: reason,
	}
}

// errSaid is what Postgres said to a login of ours that was for a client's.
func errSaid(said *backend.ServerError) *Error {
	return &Error{Severity: severityFatal, Code: said.Code(), Message: said.Message()}
}

// errStatementMode refuses a transaction block in statement mode.
func errStatementMode() *Error {
	return &Error{
		Severity: severityError, Code: "58000",
		Message: "transaction blocks are not allowed with pooler_mode = \"statement\"",
		Hint:    "Use pooler_mode = \"transaction\" for this database or user.",
	}
}

// errPoolRemoved closes clients whose user or database left the configuration.
func errPoolRemoved(user, database string) *Error {
	return &Error{
		Severity: severityFatal, Code: "57P01",
		Message: fmt.Sprintf("the pool for user %q and database %q was removed from the configuration", user, database),
	}
}

// errTooManyLost is for a client whose servers die as soon as it gets them.
func errTooManyLost() *Error {
	return &Error{
		Severity: severityFatal, Code: "08006",
		Message: "the server closed the connection unexpectedly",
		Detail:  fmt.Sprintf("%d servers in a row were lost before they were sent anything.", maxRetries),
	}
}

// errParameters is for a server that refuses run-time parameters that another
// server of the same pool has accepted.
func errParameters(reason error) *Error {
	return &Error{
		Severity: severityFatal, Code: "58000",
		Message: "the session's run-time parameters could not be set on the server",
		Detail:  reason.Error(),
	}
}

// errTooManyClients is for the client that would need one cancel key too many.
func errTooManyClients() *Error {
	return &Error{
		Severity: severityFatal, Code: "53300", Message: "sorry, too many clients already",
		Detail: fmt.Sprintf("pgebb has cancel keys for %d clients.", maxClients),
	}
}

// errOption is for a command-line argument in "options" that a pooler cannot give
// to a server process that is running already.
func errOption(arg string) *Error {
	return &Error{
		Severity: severityFatal, Code: "42601",
		Message: fmt.Sprintf("invalid command-line argument for server process: %s", arg),
		Hint:    "Through pgebb, \"options\" can hold -c name=value and --name=value.",
	}
}

// errOptionValue is for a setting in "options" without a value, in the words of
// Postgres. The argument is one as -c name or --name.
func errOptionValue(arg string) *Error {
	return &Error{
		Severity: severityFatal, Code: "42601", Message: fmt.Sprintf("%s requires a value", arg),
	}
}

// errRole is for a value of pgdog.role that there is not, in the words of Postgres.
func errRole(value string) *Error {
	return &Error{
		Severity: severityFatal, Code: "22023", Message: fmt.Sprintf("invalid value for parameter %q: %q", roleParameter, value),
		Hint: "Available values: primary, replica, auto.",
	}
}

// errTooManyParameters is for a StartupMessage with more run-time parameters than
// anybody needs.
func errTooManyParameters(n int) *Error {
	return &Error{
		Severity: severityFatal, Code: "54000",
		Message: fmt.Sprintf("too many run-time parameters in the startup packet: %d", n),
		Detail:  fmt.Sprintf("At most %d are accepted.", maxParams),
	}
}

// errSASL is for a SASL message that is not one, in the words of Postgres.
func errSASL(reason error) *Error {
	return &Error{
		Severity: severityFatal, Code: "08P01", Message: scram.ErrMalformed.Error(),
		Detail: strings.TrimPrefix(reason.Error(), scram.ErrMalformed.Error()+": "),
	}
}

// errChannelBinding is for a client that is not connected to us, as far as it can see. The
// SQLSTATE is that of Postgres.
func errChannelBinding(reason error) *Error {
	return &Error{
		Severity: severityFatal, Code: "28000", Message: "SCRAM channel binding check failed", Detail: reason.Error() + ".",
		Hint: "Does somebody else than pgebb end the client's TLS connection?",
	}
}

// errStatementMemory refuses a statement that there is no room for.
func errStatementMemory(size int, limit int64) *Error {
	return &Error{
		Severity: severityError, Code: "53200", Message: "out of memory for prepared statements",
		Detail: fmt.Sprintf("A statement of %d bytes would exceed prepared_statements_memory_limit (%d bytes).", size, limit),
		Hint:   "Close statements that are not needed, or raise prepared_statements_memory_limit.",
	}
}

// errTooManyStatements refuses one statement too many of one client.
func errTooManyStatements(limit int) *Error {
	return &Error{
		Severity: severityError, Code: "53400", Message: "too many prepared statements",
		Detail: fmt.Sprintf("A client may have %d prepared statements (prepared_statements_client_limit).", limit),
		Hint:   "Close statements that are not needed, or raise prepared_statements_client_limit.",
	}
}

// errSQLByProtocol refuses what would have to be given another name when it is executed, not
// when it is parsed.
func errSQLByProtocol() *Error {
	return &Error{
		Severity: severityError, Code: "0A000", Message: "SQL's PREPARE, EXECUTE and DEALLOCATE cannot be parsed as statements in transaction pooling",
		Hint: "Send them in the simple protocol, that is as a query without parameters.",
	}
}

// errNoUnnamed is for a client who has no unnamed statement, or, if spent, had one that was not kept.
func errNoUnnamed(spent bool) *Error {
	e := &Error{Severity: severityError, Code: "26000", Message: "unnamed prepared statement does not exist"}
	if spent {
		e.Hint = "Outside of a transaction, the unnamed statement is kept only if the batch that parses it does not bind it."
	}
	return e
}

// errReservedName refuses a name that is pgebb's on servers.
func errReservedName(name string) *Error {
	return &Error{
		Severity: severityError, Code: "42939", Message: fmt.Sprintf("prepared statement %q does not exist", name),
		Detail: "Names that begin with __pgebb_ are pgebb's own.",
	}
}

// errListen is for LISTEN where the next transaction is on another server, to which the
// notifications would not come, without pub_sub_channel_size.
func errListen() *Error {
	return &Error{
		Severity: severityError, Code: "0A000",
		Message: "LISTEN is not possible in transaction pooling",
		Detail:  "Notifications come to the server connection, and that is shared with other clients.",
		Hint:    "Set general.pub_sub_channel_size, give the user or the database pooler_mode = \"session\", or connect to Postgres directly.",
	}
}

// errNoListener is for LISTEN where pgebb cannot listen for its clients. If it comes behind the
// answer, the transaction has been committed.
func errNoListener(reason error) *Error {
	return &Error{
		Severity: severityError, Code: "58000", Message: "LISTEN has no effect: pgebb cannot listen for its clients",
		Hint:    "Try again.",
		Private: reason.Error(),
	}
}

// errListenEncoding is for LISTEN of a client whose client_encoding is not that of the
// connection that listens for all.
func errListenEncoding(encoding string) *Error {
	return &Error{
		Severity: severityError, Code: "0A000",
		Message: "LISTEN is possible in transaction pooling only with client_encoding " + encoding,
		Detail:  "One connection listens for all clients, and notifications come in its encoding, the database's.",
		Hint:    "SET client_encoding = '" + encoding + "' before LISTEN.",
	}
}

// errTooManyChannels is for a client that wants to listen to more channels than it may. It
// comes behind the answer; the client listens to those of before.
func errTooManyChannels(limit int) *Error {
	return &Error{
		Severity: severityError, Code: "54000", Message: "LISTEN has no effect: too many channels",
		Detail: fmt.Sprintf("A client can listen to %d channels at a time.", limit),
	}
}

// errReservedChannel is for a client that wants to listen to a channel whose name is one of
// pgebb's own, which it would hear nothing of. It comes behind the answer; the client listens to
// those of before.
func errReservedChannel(name string) *Error {
	return &Error{
		Severity: severityError, Code: "42939", Message: fmt.Sprintf("LISTEN has no effect: the name of channel %q is reserved", name),
		Detail: "In transaction pooling, names that begin with __pgebb_ are pgebb's own.",
	}
}

// errSessionParameters is for a client that has given its session more run-time parameters than can
// follow it from server to server. The transaction has ended as the client was told.
func errSessionParameters(reason error) *Error {
	return &Error{
		Severity: severityFatal, Code: "54000",
		Message: "the state of the session could not be kept: " + reason.Error(),
		Detail:  "In transaction pooling, run-time parameters follow a client from server to server.",
		Hint:    "Set fewer or shorter ones, or use pooler_mode = \"session\" for this user.",
	}
}

// errSessionState is for a client whose session could not be looked at after it had changed it.
func errSessionState(reason error) *Error {
	return &Error{
		Severity: severityFatal, Code: "58000",
		Message: "the state of the session could not be kept: " + reason.Error(),
		Detail:  "pgebb asks Postgres for the run-time parameters after a transaction that may have changed them.",
	}
}

// errProcessMemory is for who wants something that there is no memory for.
func errProcessMemory(limit int64, detail string) *Error {
	return &Error{
		Severity: severityFatal, Code: "53200", Message: "out of memory",
		Detail: fmt.Sprintf("pgebb is near its memory.limit of %d bytes. %s", limit, detail),
		Hint:   "SHOW MEMORY on the console says what takes it. Raise memory.limit, or have fewer clients or prepared statements.",
	}
}

// errQuerySize is for a statement that is longer than the operator allows.
func errQuerySize(size, limit int) *Error {
	return &Error{
		Severity: severityFatal, Code: "54000",
		Message: "query size exceeds query_size_limit",
		Detail:  fmt.Sprintf("The statement has %d bytes; query_size_limit is %d.", size, limit),
	}
}
