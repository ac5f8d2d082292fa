package parser

import "github.com/pgebb/pgebb/internal/verdict"

// opener is what a statement's first word makes it.
type opener uint8

const (
	otherOpener  opener = iota // writes, for all that is known, and leaves nothing in the session
	readOpener                 // SELECT, VALUES, TABLE, WITH
	plainOpener                // its flags say it all
	parsedOpener               // the parser must say more
	bodyOpener                 // DO: the text of its strings is looked through
)

// function is what a function does that matters.
type function uint8

const (
	harmless function = iota
	writes
	locks
	setsConfig
)

func (f function) flags() verdict.Flags {
	switch f {
	case writes:
		return verdict.Write
	case locks:
		return verdict.Write | verdict.Lock
	case setsConfig:
		return verdict.Write | verdict.Settings | verdict.Unnamed
	}
	return 0
}

// word is what is known of a word.
type word struct {
	opener   opener        // as the first word of a statement
	opens    verdict.Flags // what it says there
	sign     verdict.Flags // what it may say anywhere else; there for nothing if it is only a name
	function function      // as the name of a function
	set      bool          // it is that of a set operation
}

// openers are the first words of statements. Any other statement writes.
var openers = map[string]word{
	"select": {opener: readOpener}, "values": {opener: readOpener}, "table": {opener: readOpener}, "with": {opener: readOpener},
	"begin": {opener: plainOpener, opens: verdict.Begin}, "start": {opener: plainOpener, opens: verdict.Begin},
	"commit": {opener: plainOpener, opens: verdict.End}, "end": {opener: plainOpener, opens: verdict.End},
	"abort": {opener: plainOpener, opens: verdict.End}, "rollback": {opener: plainOpener, opens: verdict.End},
	"savepoint": {opener: plainOpener, opens: verdict.Savepoint}, "release": {opener: plainOpener, opens: verdict.Savepoint},
	"listen":     {opener: plainOpener, opens: verdict.Write | verdict.Listen},
	"unlisten":   {opener: plainOpener, opens: verdict.Write | verdict.Unlisten},
	"notify":     {opener: plainOpener, opens: verdict.Write | verdict.Notify},
	"show":       {opener: plainOpener, opens: verdict.Write | verdict.Show},
	"copy":       {opens: verdict.Write | verdict.Copy},
	"execute":    {opens: verdict.Write | verdict.Execute},
	"set":        {opener: parsedOpener, opens: verdict.Write | verdict.Settings | verdict.Unnamed | verdict.Authorization},
	"reset":      {opener: parsedOpener, opens: verdict.Write | verdict.Settings | verdict.Unnamed | verdict.Authorization},
	"discard":    {opener: parsedOpener, opens: verdict.Write | verdict.Settings | verdict.Unnamed | verdict.Discard | verdict.Unlisten | verdict.Lock},
	"deallocate": {opener: parsedOpener, opens: verdict.Write | verdict.Discard},
	"prepare":    {opener: parsedOpener, opens: verdict.Write | verdict.Prepare | verdict.End},
	"declare":    {opener: parsedOpener, opens: verdict.Write},
	"explain":    {opener: parsedOpener, opens: verdict.Write},
	"do":         {opener: bodyOpener, opens: verdict.Write},
}

// signs are words that matter within a statement.
var signs = map[string]word{
	"insert": {sign: verdict.Write}, "delete": {sign: verdict.Write}, "merge": {sign: verdict.Write}, "into": {sign: verdict.Write},
	"update": {sign: verdict.Write | verdict.Locking}, "share": {sign: verdict.Write | verdict.Locking},
	"temp":        {sign: verdict.Write | verdict.Temp},
	"temporary":   {sign: verdict.Write | verdict.Temp},
	"pg_temp":     {sign: verdict.Write | verdict.Temp},
	"hold":        {sign: verdict.Write | verdict.Hold},
	"pg_settings": {sign: verdict.Write | verdict.Settings | verdict.Unnamed},
	"union":       {set: true}, "intersect": {set: true}, "except": {set: true},
	"to": {}, "read": {}, "only": {}, "write": {}, // see scanner.inside
}

// functions are those of Postgres that do more than to compute a value. Source: the
// chapters on sequence, administration, advisory-lock and large-object functions of its
// documentation.
var functions = map[string]function{
	"nextval": writes, "setval": writes, "currval": writes, "lastval": writes, "setseed": writes,
	"txid_current": writes, "pg_current_xact_id": writes, "pg_notify": writes, "loread": writes, "lowrite": writes,
	"query_to_xml": writes, "cursor_to_xml": writes,
	"set_config":       setsConfig,
	"pg_advisory_lock": locks, "pg_advisory_lock_shared": locks,
	"pg_try_advisory_lock": locks, "pg_try_advisory_lock_shared": locks,
	"pg_advisory_unlock": locks, "pg_advisory_unlock_shared": locks, "pg_advisory_unlock_all": locks,
}

// writingPrefixes begin the names of functions that write, or must run on a primary.
var writingPrefixes = []string{
	"lo_", "dblink", "pg_advisory_xact_lock", "pg_try_advisory_xact_lock", "pg_create_", "pg_drop_", "pg_copy_",
	"pg_replication_", "pg_logical_", "pg_switch_", "pg_export_snapshot", "pg_import_", "pg_start_backup",
	"pg_stop_backup", "pg_backup_", "pg_promote", "pg_wal_replay_", "pg_reload_conf", "pg_rotate_", "pg_stat_reset",
	"pg_cancel_backend", "pg_terminate_backend", "pg_log_", "pg_file_", "pg_extension_config_dump", "pg_sync_",
	"pg_current_wal_", "pg_walfile_", "pg_nextoid", "brin_", "gin_clean", "binary_upgrade_",
}

// functionOf says what the function with a name does.
func functionOf(name []byte) function {
	if f := functions[string(name)]; f != harmless {
		return f
	}
	if len(name) == 0 {
		return harmless
	}
	for _, p := range prefixes[name[0]&31] {
		if len(name) >= len(p) && string(name[:len(p)]) == p {
			return writes
		}
	}
	return harmless
}

// prefixes are writingPrefixes by their first letter.
var prefixes = func() (by [32][]string) {
	for _, p := range writingPrefixes {
		by[p[0]&31] = append(by[p[0]&31], p)
	}
	return by
}()

// longestWord is the longest word in bytes that means anything here.
const longestWord = 32

// words are all of them, but for functions that are known by their prefix.
var words = func() map[string]word {
	all := make(map[string]word)
	for text, w := range openers {
		all[text] = w
	}
	for text, w := range signs {
		o := all[text]
		o.sign, o.set = w.sign, w.set
		all[text] = o
	}
	for text, f := range functions {
		o := all[text]
		o.function, o.sign = f, o.sign|f.flags()
		all[text] = o
	}
	for text, w := range all {
		if openers[text].opens == 0 && w.opener == otherOpener {
			w.opens = verdict.Write
			all[text] = w
		}
	}
	return all
}()

// otherWord is what is known of all others.
var otherWord = word{opens: verdict.Write}

// candidates are the first letters and the lengths that words have, so that most words of
// a text need not be looked up.
var candidates = func() (c [longestWord + 1][32]bool) {
	for text := range words {
		c[len(text)][text[0]&31] = true
	}
	for _, p := range writingPrefixes {
		for n := len(p); n <= longestWord; n++ {
			c[n][p[0]&31] = true
		}
	}
	return c
}()

// lookup finds what is known of a word. It uses fold, which must have room for it.
func lookup(raw []byte, quoted bool, fold *[longestWord]byte) (text []byte, w word) {
	if len(raw) == 0 || len(raw) > longestWord || !candidates[len(raw)][raw[0]&31] {
		return nil, otherWord
	}
	text = fold[:len(raw)]
	for i, b := range raw {
		if b >= 'A' && b <= 'Z' && !quoted {
			b |= 0x20
		}
		text[i] = b
	}
	w, known := words[string(text)]
	if !known {
		w = otherWord
		if f := functionOf(text); f != harmless {
			w.function, w.sign = f, f.flags()
		}
	}
	return text, w
}
