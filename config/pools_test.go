package config

import (
	"reflect"
	"slices"
	"testing"
	"time"
)

const precedence = `
[general]
default_pool_size = 1
min_pool_size = 0
pooler_mode = "statement"
idle_timeout = 1
server_lifetime = 1
server_lifetime_jitter = 1
query_timeout = 11
client_idle_timeout = 12
client_idle_in_transaction_timeout = 13
checkout_timeout = 14
rollback_timeout = 15
connect_timeout = 16
connect_attempts = 17
connect_attempt_delay = 18
connection_recovery = "rollback_only"
client_connection_recovery = "recover"
healthcheck_interval = 19
healthcheck_timeout = 20
idle_healthcheck_interval = 21
idle_healthcheck_delay = 22
ban_timeout = 23
ban_replica_lag = 24
ban_replica_lag_bytes = 25

[[databases]]
name = "plain"
host = "h"

[[databases]]
name = "set"
host = "h"
lb_weight = 7
port = 5433
database_name = "real"
user = "dbuser"
password = "dbpassword"
pool_size = 2
min_pool_size = 1
pooler_mode = "session"
idle_timeout = 2
server_lifetime = 2
server_lifetime_jitter = 2
statement_timeout = 2
lock_timeout = 2
read_only = true

[[databases]]
name = "role"
host = "h"
pool_size = 2
pool_size_primary = 3
pool_size_replica = 4
min_pool_size_primary = 1
min_pool_size_replica = 2
idle_timeout_primary = 3
idle_timeout_replica = 4

[[databases]]
name = "replica"
host = "h"
role = "replica"
pool_size = 2
pool_size_primary = 3
pool_size_replica = 4
min_pool_size_primary = 1
min_pool_size_replica = 2
idle_timeout_primary = 3
idle_timeout_replica = 4
`

const precedenceUsers = `
[[users]]
name = "plain"
password = "p"
all_databases = true

[[users]]
name = "set"
all_databases = true
password = "p"
passwords = ["q", "", "p"]
pool_size = 20
min_pool_size = 10
pooler_mode = "transaction"
idle_timeout = 20
server_lifetime = 20
server_lifetime_jitter = 20
statement_timeout = 20
lock_timeout = 20
read_only = false
server_user = "other"
server_password = "r"

[[users]]
name = "role"
all_databases = true
pool_size = 20
pool_size_primary = 30
pool_size_replica = 40
min_pool_size_primary = 10
min_pool_size_replica = 11
idle_timeout_primary = 30
idle_timeout_replica = 40
password = "p"

[[users]]
name = "hashed"
databases = ["plain", "set"]
password_hash = "SCRAM-SHA-256$4096:AAECAwQFBgcICQoLDA0ODw==$lzjimAPnIeov+dqCs/uVy1700PwQevRa8t3m881dxCs=:yv7pdPM+u1PvNMRconP/GOPtNqM0oq6Hw363MOCm1s8="
min_pool_size = 1
`

func TestPrecedence(t *testing.T) {
	c := mustLoad(t, precedence, precedenceUsers, nil)
	base := Pool{
		Host: "h", Port: 5432, Role: "primary", Size: 1, Mode: Statement, TLSVerify: VerifyPrefer, ServerPasswords: []string{"p"},
		IdleTimeout: time.Millisecond, ServerLifetime: time.Millisecond, ServerLifetimeJitter: time.Millisecond,
		QueryTimeout: 11 * time.Millisecond, ClientIdleTimeout: 12 * time.Millisecond, ClientIdleInTransactionTimeout: 13 * time.Millisecond,
		CheckoutTimeout: 14 * time.Millisecond, RollbackTimeout: 15 * time.Millisecond, ConnectTimeout: 16 * time.Millisecond,
		ConnectAttempts: 17, ConnectAttemptDelay: 18 * time.Millisecond, Recovery: RollbackOnly, ClientRecovery: Recover,
		Weight: 255,
		Health: Health{19 * time.Millisecond, 20 * time.Millisecond, 21 * time.Millisecond, 22 * time.Millisecond, 23 * time.Millisecond, 24 * time.Millisecond, 25},
	}
	for _, test := range []struct {
		user, database string
		change         func(*Pool)
	}{
		{"plain", "plain", func(p *Pool) {}},
		{"plain", "set", func(p *Pool) {
			p.Port, p.ServerDatabase, p.ServerUser, p.ServerPasswords = 5433, "real", "dbuser", []string{"dbpassword"}
			p.Weight = 7
			p.Size, p.MinSize, p.Mode, p.ReadOnly = 2, 1, Session, true
			p.IdleTimeout, p.ServerLifetime, p.ServerLifetimeJitter = 2*time.Millisecond, 2*time.Millisecond, 2*time.Millisecond
			p.StatementTimeout, p.LockTimeout = 2*time.Millisecond, 2*time.Millisecond
		}},
		{"plain", "role", func(p *Pool) { p.Size, p.MinSize, p.IdleTimeout = 3, 1, 3*time.Millisecond }},
		{"plain", "replica", func(p *Pool) {
			p.Role, p.Size, p.MinSize, p.IdleTimeout = "replica", 4, 2, 4*time.Millisecond
		}},
		{"set", "set", func(p *Pool) {
			p.Port, p.ServerDatabase, p.ServerUser, p.ServerPasswords = 5433, "real", "other", []string{"r"}
			p.Weight = 7
			p.Size, p.MinSize, p.Mode = 20, 10, Transaction
			p.IdleTimeout, p.ServerLifetime, p.ServerLifetimeJitter = 20*time.Millisecond, 20*time.Millisecond, 20*time.Millisecond
			p.StatementTimeout, p.LockTimeout = 20*time.Millisecond, 20*time.Millisecond
		}},
		{"role", "role", func(p *Pool) { p.Size, p.MinSize, p.IdleTimeout = 30, 10, 30*time.Millisecond }},
		{"role", "replica", func(p *Pool) {
			p.Role, p.Size, p.MinSize, p.IdleTimeout = "replica", 40, 11, 40*time.Millisecond
		}},
		// Without a password nobody knows whether servers can log in, so none is opened
		// before a client comes.
		{"hashed", "plain", func(p *Pool) { p.ServerPasswords, p.MinSize = nil, 0 }},
	} {
		want := base
		want.User, want.Database, want.ServerUser, want.ServerDatabase = test.user, test.database, test.user, test.database
		test.change(&want)
		got, ok := c.FindPool(test.user, test.database)
		if !ok || !reflect.DeepEqual(got, want) {
			t.Errorf("the pool of %s at %s is\n%+v, want\n%+v", test.user, test.database, got, want)
		}
	}
}

func TestPoolsAreInTheOrderOfTheFiles(t *testing.T) {
	c := mustLoad(t, "[[databases]]\nname = 'z'\nhost = 'h'\n[[databases]]\nname = 'a'\nhost = 'h'\n",
		"[[users]]\nname = 'y'\nall_databases = true\npassword = 'x'\n[[users]]\nname = 'b'\ndatabases = ['a', 'z', 'a']\npassword = 'x'\n", nil)
	var got []string
	for _, p := range c.Pools() {
		got = append(got, p.User+"/"+p.Database)
	}
	if want := []string{"y/z", "y/a", "b/a", "b/z"}; !slices.Equal(got, want) {
		t.Errorf("the pools are %v, want %v", got, want)
	}
}

func TestMinimumFitsIntoPool(t *testing.T) {
	c := mustLoad(t, "[general]\nmin_pool_size = 50\n"+oneDatabase, oneUser, nil)
	if p := c.Pools()[0]; p.MinSize != 10 {
		t.Errorf("with min_pool_size 50 a pool of 10 keeps %d", p.MinSize)
	}
}

func TestLookups(t *testing.T) {
	c := mustLoad(t, precedence, precedenceUsers+"[[users]]\nname = 'set'\ndatabase = 'elsewhere'\npassword = 'z'\n", nil)
	for _, test := range []struct {
		user, database string
		want           []string
		known          bool
	}{
		{"set", "set", []string{"q", "p"}, true},
		{"set", "elsewhere", []string{"z"}, true},
		{"set", "nowhere", []string{"q", "p"}, true},
		{"nobody", "set", nil, false},
		{"", "", nil, false},
	} {
		cred, ok := c.Login(test.user, test.database)
		if ok != test.known || !slices.Equal(cred.Passwords, test.want) {
			t.Errorf("a login as %s at %s is held to %v, %v", test.user, test.database, cred, ok)
		}
	}
	if cred, _ := c.Login("hashed", "plain"); cred.PasswordHash == "" || cred.Passwords != nil {
		t.Errorf("hashed is held to %+v", cred)
	}
	if _, ok := c.FindPool("hashed", "role"); ok {
		t.Error("a user has a pool at a database that it may not use")
	}
	if !c.HasDatabase("set") || c.HasDatabase("elsewhere") || c.HasDatabase("real") {
		t.Error("HasDatabase is wrong about set, elsewhere or real")
	}
}

func TestLevel(t *testing.T) {
	for text, want := range map[string]string{
		"trace": "DEBUG-4", "debug": "DEBUG", "INFO": "INFO", "warn": "WARN", "error": "ERROR", "off": "ERROR+4",
		"hyper=debug,warn": "WARN", "pgdog=debug": "INFO", "nonsense": "INFO",
	} {
		if got := (&General{LogLevel: text}).Level().String(); got != want {
			t.Errorf("log_level %q is %s, want %s", text, got, want)
		}
	}
}

func TestWordsOfTypes(t *testing.T) {
	for _, m := range []PoolerMode{Transaction, Session, Statement} {
		var back PoolerMode
		if b, err := m.MarshalText(); err != nil || back.UnmarshalText(b) != nil || back != m {
			t.Errorf("%v becomes %v", m, back)
		}
	}
	for _, a := range []AuthType{AuthScram, AuthMD5, AuthTrust, AuthPlain} {
		var back AuthType
		if b, err := a.MarshalText(); err != nil || back.UnmarshalText(b) != nil || back != a {
			t.Errorf("%v becomes %v", a, back)
		}
	}
	for _, r := range []Recovery{Recover, RollbackOnly, Drop} {
		var back Recovery
		if b, err := r.MarshalText(); err != nil || back.UnmarshalText(b) != nil || back != r {
			t.Errorf("%v becomes %v", r, back)
		}
	}
}

func TestAPoolOfAHostWhoseRoleIsFoundOutHasTheSettingsOfThatRole(t *testing.T) {
	c := mustLoad(t, "[[databases]]\nname = 'app'\nhost = 'h'\nrole = 'auto'\npool_size = 5\npool_size_replica = 7\nmin_pool_size_primary = 2\nidle_timeout_replica = 3\n", oneUser, nil)
	p := c.Pools()[0]
	for _, test := range []struct {
		role        string
		size, least int
		idle        time.Duration
	}{
		{Primary, 5, 2, time.Minute},
		{Replica, 7, 1, 3 * time.Millisecond},
		{Auto, 5, 2, time.Minute},
	} {
		if q := p.As(test.role); q.Size != test.size || q.MinSize != test.least || q.IdleTimeout != test.idle {
			t.Errorf("as %s it has %d, %d, %v", test.role, q.Size, q.MinSize, q.IdleTimeout)
		}
	}
}
