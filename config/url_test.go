package config

import (
	"math"
	"reflect"
	"slices"
	"testing"
	"time"
)

func TestDatabaseURLs(t *testing.T) {
	env := map[string]string{
		"PGDOG_DATABASE_URL_1": "postgresql://bob@[::1]/other",
		"PGDOG_DATABASE_URL_3": "postgres://nobody@h/after-a-gap",
	}
	c, problems := loadText(t, oneDatabase, oneUser, env,
		"postgres://ann:p%40ss@db:5433/app?database_name=real&user=u&password=w&pool_size=7&min_pool_size=2&pooler_mode=session"+
			"&statement_timeout=8&idle_timeout=9&read_only=yes&server_lifetime=10&server_lifetime_jitter=11&role=primary&shard=0&sslmode=prefer")
	expect(t, problems, `warning: PGDOG_DATABASE_URL_1: users: user "bob" has no password, so nobody can log in as it (auth_type is scram)`)
	if len(c.Databases) != 2 || len(c.Users) != 2 {
		t.Fatalf("two URLs give %d databases and %d users", len(c.Databases), len(c.Users))
	}
	p, ok := c.FindPool("ann", "app")
	want := Pool{
		User: "ann", Database: "app", Host: "db", Port: 5433, Role: "primary", Weight: 255, ServerUser: "u", ServerDatabase: "real",
		TLSVerify: VerifyPrefer, ServerPasswords: []string{"w"},
		Size: 7, MinSize: 2, Mode: Session, StatementTimeout: 8 * time.Millisecond, IdleTimeout: 9 * time.Millisecond, ReadOnly: true,
		ServerLifetime: 10 * time.Millisecond, ServerLifetimeJitter: 11 * time.Millisecond,
		ConnectTimeout: 5 * time.Second, ConnectAttempts: 1, CheckoutTimeout: 5 * time.Second, RollbackTimeout: 5 * time.Second,
		QueryTimeout: Off, ClientIdleTimeout: Off, ClientIdleInTransactionTimeout: Off, Recovery: Recover, ClientRecovery: Drop,
		Health: Health{30 * time.Second, 5 * time.Second, 30 * time.Second, 5 * time.Second, 5 * time.Minute, Off, math.MaxInt},
	}
	if !ok || !reflect.DeepEqual(p, want) {
		t.Errorf("the URL gives\n%+v, want\n%+v", p, want)
	}
	if p, ok := c.FindPool("bob", "other"); !ok || p.Host != "::1" || p.Port != 5432 || p.MinSize != 0 {
		t.Errorf("the URL of the environment gives %+v", p)
	}
	if cred, _ := c.Login("ann", "app"); !reflect.DeepEqual(cred.Passwords, []string{"p@ss"}) {
		t.Errorf("ann is held to %v", cred.Passwords)
	}
}

func TestHostsOfOneDatabaseByURL(t *testing.T) {
	c, problems := loadText(t, "", "", nil, "postgres://ann:x@replica/app?role=replica", "postgres://ann:x@primary/app", "postgres://bob:y@primary/app")
	expect(t, problems, "")
	var got []string
	for _, p := range c.Pools() {
		got = append(got, p.User+" "+p.Host+" "+p.Role)
	}
	if want := []string{"ann replica replica", "ann primary primary", "bob replica replica", "bob primary primary"}; !slices.Equal(got, want) {
		t.Errorf("the pools are %q, want %q", got, want)
	}
	if p, _ := c.FindPool("bob", "app"); p.Host != "primary" {
		t.Errorf("bob's first host is %s", p.Host)
	}
}

func TestBadDatabaseURLs(t *testing.T) {
	for url, want := range map[string]string{
		"nonsense":                           "database URL 1: a database URL starts with postgres:// or postgresql://",
		"postgres://h/d":                     "database URL 1: a database URL has a user, a host and a database: postgres://user:password@host:port/database",
		"postgres://u@h":                     "database URL 1: a database URL has a user, a host and a database: postgres://user:password@host:port/database",
		"postgres://u@/d":                    "database URL 1: a database URL has a user, a host and a database: postgres://user:password@host:port/database",
		"postgres://u:%@h/d":                 "database URL 1: this is not a URL; characters that mean something in one are written as %XX",
		"postgres://u@h:99999999999/d":       "database URL 1: databases.port: the value must be between 1 and 65535, not 99999999999",
		"postgres://u:x@h/d?pol_size=1":      `database URL 1: pol_size: unknown parameter (did you mean "pool_size"?)`,
		"postgres://u:x@h/d?name=e":          `database URL 1: name: unknown parameter`,
		"postgres://u:x@h/d?%":               "database URL 1: what stands behind the question mark is not name=value&name=value",
		"postgres://u:x@h/d?pool_size=many":  `database URL 1: users.pool_size: the value must be a whole number that is not negative, not the string "many"`,
		"postgres://u:x@h/d?shard=1":         "database URL 1: databases.shard: this is not supported, and to ignore it would mislead: remove it or set it to 0",
		"postgres://u:x@h/d?sslmode=require": "database URL 1: sslmode: tls_verify is prefer, which is less than require: set it to verify_ca",
		"postgres://u:x@h/d?sslmode=requir":  `database URL 1: sslmode: "requir" is no sslmode (did you mean "require"?)`,
	} {
		_, problems := loadText(t, "", "", nil, url)
		var errors Problems
		for _, p := range problems {
			if !p.Warning {
				errors = append(errors, p)
			}
		}
		expect(t, errors, want)
	}
}
