package config

import (
	"fmt"
	"math"
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

// UnmarshalText implements encoding.TextUnmarshaler.
func (a *AuthType) UnmarshalText(b []byte) error { return unmarshalEnum(a, b, authTypes) }

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

// UnmarshalText implements encoding.TextUnmarshaler.
func (r *Recovery) UnmarshalText(b []byte) error { return unmarshalEnum(r, b, recoveries) }

// unmarshalEnum finds a name; PgDog's environment spells rollback_only without its
// underscore and any name in any case.
func unmarshalEnum[T ~uint8](v *T, b []byte, names []string) error {
	plain := func(s string) string { return strings.ToLower(strings.NewReplacer("_", "", "-", "").Replace(s)) }
	for i, name := range names {
		if plain(name) == plain(string(b)) {
			*v = T(i)
			return nil
		}
	}
	return fmt.Errorf("%q is none of %s", b, strings.Join(names, ", "))
}
