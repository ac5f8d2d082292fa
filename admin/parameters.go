package admin

import (
	"maps"
	"slices"
	"strings"
)

// What drivers and tools say to a database unasked is answered here: they SHOW and SET
// run-time parameters of Postgres, and begin and end transactions.

// parameters are the run-time parameters of Postgres that are known, with what the
// console says of them.
var parameters = map[string]string{
	"application_name":                    "",
	"bytea_output":                        "hex",
	"client_encoding":                     "UTF8",
	"client_min_messages":                 "notice",
	"datestyle":                           "ISO, MDY",
	"default_transaction_isolation":       "read committed",
	"default_transaction_read_only":       "off",
	"extra_float_digits":                  "1",
	"idle_in_transaction_session_timeout": "0",
	"integer_datetimes":                   "on",
	"intervalstyle":                       "postgres",
	"is_superuser":                        "off",
	"lock_timeout":                        "0",
	"max_identifier_length":               "63",
	"search_path":                         "",
	"server_encoding":                     "UTF8",
	"session_authorization":               "",
	"standard_conforming_strings":         "on",
	"statement_timeout":                   "0",
	"timezone":                            "GMT",
	"transaction_isolation":               "read committed",
	"transaction_read_only":               "off",
}

// parameter is the statement that shows a run-time parameter of Postgres, or sets one
// which does nothing; nil if it is neither.
func parameter(words []word) *statement {
	if !is(words[0], "SHOW") || len(words) < 2 {
		return nil
	}
	name := strings.ToLower(strings.Join(texts(words[1:]), "_"))
	switch name {
	case "time_zone":
		name = "timezone"
	case "transaction_isolation_level":
		name = "transaction_isolation"
	case "server_version":
		return &statement{cmd: &serverVersion, name: "SHOW", tag: "SHOW", shown: []int{0}}
	}
	value, ok := parameters[name]
	if !ok {
		return nil
	}
	cmd := &Command{Names: []string{"SHOW"}, Columns: text(name), ReadOnly: true, run: func(*request) ([][]*string, error) {
		return [][]*string{row(value)}, nil
	}}
	return &statement{cmd: cmd, name: "SHOW", tag: "SHOW", shown: []int{0}}
}

var serverVersion = Command{Names: []string{"SHOW"}, Columns: text("server_version"), ReadOnly: true, run: func(r *request) ([][]*string, error) {
	return [][]*string{row(r.serverVersion())}, nil
}}

// serverVersion is what clients are told of the version of the server.
func (c *Console) serverVersion() string { return c.src.Version + " (pgebb)" }

// ignoredCommands are those that say nothing to a console.
func ignoredCommands() []Command {
	return []Command{{
		Names:   []string{"BEGIN", "START TRANSACTION", "COMMIT", "END", "ROLLBACK", "ABORT", "DISCARD ALL", "DEALLOCATE"},
		Args:    "…",
		Doc:     "Accepted, because drivers and tools say it unasked; nothing happens: the console has no transactions.",
		Dialect: both, ReadOnly: true,
	}, {
		Names: []string{"SET SESSION CHARACTERISTICS", "SET TRANSACTION"}, Args: "…", Tag: "SET",
		Doc:     "Accepted, because drivers and tools say it unasked; nothing happens: the console has no transactions.",
		Dialect: both, ReadOnly: true, run: func(*request) ([][]*string, error) { return nil, nil },
	}}
}

// ignoresSetting reports whether a key of SET or RESET is a run-time parameter of
// Postgres, which means nothing to the console.
func ignoresSetting(key string) bool {
	key = strings.ToLower(key)
	return slices.Contains([]string{"time", "names", "role", "session"}, key) || slices.Contains(slices.Collect(maps.Keys(parameters)), key)
}
