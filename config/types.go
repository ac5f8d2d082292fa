package config

import (
	"fmt"
	"log/slog"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Off is the value of a time limit that there is not. In the files it is
// 9223372036854775807 milliseconds, as in PgDog.
const Off = time.Duration(math.MaxInt64)

// PoolerMode says when a server goes back to its pool.
type PoolerMode uint8

// The pooler modes.
const (
	Transaction PoolerMode = iota // after each transaction
	Session                       // when the client leaves
	Statement                     // after each statement; transaction blocks are refused
)

var poolerModes = []string{"transaction", "session", "statement"}

func (m PoolerMode) String() string { return poolerModes[m] }

// MarshalText implements encoding.TextMarshaler.
func (m PoolerMode) MarshalText() ([]byte, error) { return []byte(m.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (m *PoolerMode) UnmarshalText(b []byte) error { return unmarshalEnum(m, b, poolerModes) }

// AuthType says how clients prove who they are.
type AuthType uint8

// The ways of authentication.
const (
	AuthScram AuthType = iota
	AuthMD5
	AuthTrust
	AuthPlain
)

var authTypes = []string{"scram", "md5", "trust", "plain"}

func (a AuthType) String() string { return authTypes[a] }

// MarshalText implements encoding.TextMarshaler.
func (a AuthType) MarshalText() ([]byte, error) { return []byte(a.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (a *AuthType) UnmarshalText(b []byte) error { return unmarshalEnum(a, b, authTypes) }

// ParserMode says which statements are judged, and how.
type ParserMode uint8

// The modes of query_parser.
const (
	ParserAuto                   ParserMode = iota // where their words are not enough
	ParserOn                                       // all are parsed
	ParserOff                                      // none
	ParserSessionControl                           // those that change the session
	ParserSessionControlAndLocks                   // and those that take advisory locks
)

var parserModes = []string{"auto", "on", "off", "session_control", "session_control_and_locks"}

func (m ParserMode) String() string { return parserModes[m] }

// MarshalText implements encoding.TextMarshaler.
func (m ParserMode) MarshalText() ([]byte, error) { return []byte(m.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (m *ParserMode) UnmarshalText(b []byte) error { return unmarshalEnum(m, b, parserModes) }

// Passthrough says whether clients are asked for their passwords to pass them on.
type Passthrough uint8

// The ways to pass passwords on.
const (
	PassNothing Passthrough = iota
	PassEncrypted
	PassPlain
	PassEncryptedChange
	PassPlainChange
)

var passthroughAuths = []string{"disabled", "enabled", "enabled_plain", "enabled_allow_change", "enabled_plain_allow_change"}

func (p Passthrough) String() string { return passthroughAuths[p] }

// Plain reports whether passwords are also taken from connections without TLS.
func (p Passthrough) Plain() bool { return p == PassPlain || p == PassPlainChange }

// AllowChange reports whether a password may replace the one that is known.
func (p Passthrough) AllowChange() bool { return p == PassEncryptedChange || p == PassPlainChange }

// MarshalText implements encoding.TextMarshaler.
func (p Passthrough) MarshalText() ([]byte, error) { return []byte(p.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (p *Passthrough) UnmarshalText(b []byte) error { return unmarshalEnum(p, b, passthroughAuths) }

// Recovery says what to do with a connection that was left in the middle of
// something.
type Recovery uint8

// The ways of recovery.
const (
	Recover      Recovery = iota // bring it to a clean state and go on
	RollbackOnly                 // only if all it takes is a ROLLBACK
	Drop                         // close it
)

var recoveries = []string{"recover", "rollback_only", "drop"}

func (r Recovery) String() string { return recoveries[r] }

// MarshalText implements encoding.TextMarshaler.
func (r Recovery) MarshalText() ([]byte, error) { return []byte(r.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (r *Recovery) UnmarshalText(b []byte) error { return unmarshalEnum(r, b, recoveries) }

// unmarshalEnum finds a name, in whatever way it is spelt.
func unmarshalEnum[T ~uint8](v *T, b []byte, names []string) error {
	for i, name := range names {
		if plain(name) == plain(string(b)) {
			*v = T(i)
			return nil
		}
	}
	return fmt.Errorf("%q is none of %s", b, strings.Join(names, ", "))
}

// plain is a name in lower case and without what parts its words: PgDog takes
// rollbackonly for rollback_only, and any case, in the environment.
func plain(s string) string { return strings.ToLower(wordBreaks.Replace(s)) }

var wordBreaks = strings.NewReplacer("_", "", "-", "")

var logLevels = []string{"trace", "debug", "info", "warn", "error", "off"}

// Level returns the least severity that is logged. "off" is above all there are.
func (g *General) Level() slog.Level {
	level, _ := parseLevel(g.LogLevel)
	return level
}

// parseLevel reads a level, or a list of them as "info,module=debug", of which the one
// for everything counts. ok is false if there is none, and the level is then info.
func parseLevel(text string) (level slog.Level, ok bool) {
	for _, filter := range strings.Split(text, ",") {
		i := slices.Index(logLevels, strings.ToLower(strings.TrimSpace(filter)))
		if i >= 0 {
			// Levels are 4 apart, trace is as far below debug, and off above error.
			return slog.LevelDebug + slog.Level(4*(i-1)), true
		}
	}
	return slog.LevelInfo, false
}

// socketPath is where libpq looks for the Unix socket of a port in a folder.
func socketPath(dir string, port int) string {
	return filepath.Join(dir, fmt.Sprintf(".s.PGSQL.%d", port))
}
