package config

import (
	"slices"
	"time"
)

// Pool is what holds for the pool of one user at one database on one host, after the
// settings of the user, of the database and of [general] were laid over each other, in
// this order of precedence.
type Pool struct {
	User, Database string // as clients name them
	Host           string // a folder, if it starts with a slash
	Port           int
	Role           string // primary, replica, or auto as long as that is not found out
	Weight         int    // its share of the reads, where these are weighted
	bySize         *sizesByRole

	ServerUser, ServerDatabase string    // as Postgres names them
	ServerPasswords            []string  // tried in order; empty if there is none; one may be an MD5 hash
	External                   *External // where else these come from; nil if they do not; not to be changed
	TLSVerify                  TLSVerify

	Size, MinSize                  int
	Mode                           PoolerMode
	Parser                         ParserMode
	IdleTimeout                    time.Duration
	ServerLifetime                 time.Duration
	ServerLifetimeJitter           time.Duration
	StatementTimeout               time.Duration // 0 leaves it to Postgres
	LockTimeout                    time.Duration // 0 leaves it to Postgres
	ReadOnly                       bool
	ConnectTimeout                 time.Duration
	ConnectAttempts                int
	ConnectAttemptDelay            time.Duration
	CheckoutTimeout                time.Duration
	RollbackTimeout                time.Duration
	QueryTimeout                   time.Duration
	ClientIdleTimeout              time.Duration
	ClientIdleInTransactionTimeout time.Duration
	Recovery, ClientRecovery       Recovery
	Health                         Health
}

// Credential is what a client's password is held to.
type Credential struct {
	Passwords    []string // each of them will do
	PasswordHash string   // empty, or a SCRAM verifier, or an MD5 hash
	Identity     string   // common name of the certificate that does instead; empty if none
	Certificate  bool     // a certificate must be shown where authorities for that are configured
	VaultPath    string   // where in Vault the password is, in place of those above; empty if it is in the files
}

// Pools returns all pools in the order of the files.
func (c *Config) Pools() []Pool { return c.pools }

// FindPool returns the pool for a user and a database as clients name them: that of the
// host that writes go to, if it is known.
func (c *Config) FindPool(user, database string) (Pool, bool) {
	i, ok := c.byLogin[login{user, database}]
	if !ok {
		return Pool{}, false
	}
	return c.pools[i], true
}

// HasDatabase reports whether there is a database that clients know by this name.
func (c *Config) HasDatabase(name string) bool { return c.hosts[name] != nil }

// Login returns what a client's password is held to: the entry of its user for its
// database if there is one, otherwise any of its user, so that a wrong database can
// be told after the login.
func (c *Config) Login(user, database string) (Credential, bool) {
	if cred, ok := c.logins[login{user, database}]; ok {
		return cred, true
	}
	cred, ok := c.anyLogin[user]
	return cred, ok
}

// EachLogin calls f for what every user's password is held to, several times for one that
// is there for several databases.
func (c *Config) EachLogin(f func(user string, cred Credential)) {
	for l, cred := range c.logins {
		f(l.user, cred)
	}
	for user, cred := range c.anyLogin {
		f(user, cred)
	}
}

// bouncerConsole is the database that the console of PgBouncer is at.
const bouncerConsole = "pgbouncer"

// IsConsole reports whether clients that name a database get the console: it is that of
// [admin], or pgbouncer, where there is no real one.
func (c *Config) IsConsole(database string) bool {
	return database == c.Admin.Name || database == bouncerConsole && !c.HasDatabase(database)
}

// SpeaksBouncer reports whether the console at a database speaks as that of PgBouncer.
func (c *Config) SpeaksBouncer(database string) bool {
	return database == bouncerConsole && database != c.Admin.Name
}

// ConsoleLogin returns what the password of a user of the console is held to. Those of
// stats_users have the one that users.toml gives them.
func (c *Config) ConsoleLogin(user string) (Credential, bool) {
	if user == c.Admin.User {
		return Credential{Passwords: []string{c.Admin.Password}}, c.Admin.Password != ""
	}
	if !slices.Contains(c.Admin.StatsUsers, user) {
		return Credential{}, false
	}
	cred, ok := c.anyLogin[user]
	return cred, ok
}

// databases are those that an entry of users.toml covers, each once.
func (u *User) databases(c *Config) []string {
	names := append([]string{u.Database}, u.Databases...)
	if u.AllDatabases {
		for _, db := range c.Databases {
			names = append(names, db.Name)
		}
	}
	seen := map[string]bool{"": true}
	return slices.DeleteFunc(names, func(s string) bool {
		again := seen[s]
		seen[s] = true
		return again
	})
}

// index computes the pools and the tables that look-ups use.
func (c *Config) index() {
	c.byLogin, c.logins = map[login]int{}, map[login]Credential{}
	c.anyLogin, c.hosts = map[string]Credential{}, c.hostsByName()
	for i := range c.Users {
		u := &c.Users[i]
		cred := Credential{u.passwords(), u.PasswordHash, u.Identity, u.TLSClientCertificateRequired, u.VaultPath}
		if u.VaultPath != "" {
			cred.Passwords, cred.PasswordHash = nil, ""
		}
		if _, ok := c.anyLogin[u.Name]; !ok {
			c.anyLogin[u.Name] = cred
		}
		for _, name := range u.databases(c) {
			l := login{u.Name, name}
			if _, ok := c.logins[l]; ok {
				continue
			}
			c.logins[l] = cred
			for _, db := range c.hosts[name] {
				if main, ok := c.byLogin[l]; !ok || rank(db.Role) < rank(c.pools[main].Role) {
					c.byLogin[l] = len(c.pools)
				}
				c.pools = append(c.pools, c.effective(u, db))
			}
		}
	}
}

// passwords are those that are set. An empty one is none: with Postgres, too, nobody
// gets in with it.
func (u *User) passwords() []string {
	passwords := slices.DeleteFunc(slices.Clone(u.Passwords), func(s string) bool { return s == "" })
	if u.Password != "" && !slices.Contains(passwords, u.Password) {
		passwords = slices.Insert(passwords, 0, u.Password)
	}
	return passwords
}

// first returns the first of the values that is set, or last if none is.
func first[T any](last T, values ...*T) T {
	for _, v := range values {
		if v != nil {
			return *v
		}
	}
	return last
}

// parserMode is query_parser of a database.
func (c *Config) parserMode(database string) ParserMode {
	for _, q := range c.QueryParsers {
		if q.Database == database {
			return q.Level
		}
	}
	if c.General.QueryParserEnabled && c.General.QueryParser == ParserAuto {
		return ParserOn
	}
	return c.General.QueryParser
}

func (c *Config) effective(u *User, db *Database) Pool {
	g := &c.General
	p := Pool{
		User: u.Name, Database: db.Name, Host: db.Host, Port: db.Port, Role: db.Role,
		ServerUser: u.Name, ServerDatabase: db.Name, ServerPasswords: u.passwords(), TLSVerify: g.TLSVerify,
		Weight:               db.LBWeight,
		Mode:                 first(g.PoolerMode, u.PoolerMode, db.PoolerMode),
		ServerLifetime:       first(g.ServerLifetime, u.ServerLifetime, db.ServerLifetime),
		ServerLifetimeJitter: first(g.ServerLifetimeJitter, u.ServerLifetimeJitter, db.ServerLifetimeJitter),
		StatementTimeout:     first(0, u.StatementTimeout, db.StatementTimeout),
		LockTimeout:          first(0, u.LockTimeout, db.LockTimeout),
		ReadOnly:             first(false, u.ReadOnly, db.ReadOnly),
		ConnectTimeout:       g.ConnectTimeout, ConnectAttempts: g.ConnectAttempts, ConnectAttemptDelay: g.ConnectAttemptDelay,
		CheckoutTimeout: g.CheckoutTimeout, RollbackTimeout: g.RollbackTimeout, QueryTimeout: g.QueryTimeout,
		ClientIdleTimeout: g.ClientIdleTimeout, ClientIdleInTransactionTimeout: g.ClientIdleInTransactionTimeout,
		Recovery: g.ConnectionRecovery, ClientRecovery: g.ClientConnectionRecovery,
		Health: c.health(),
		Parser: c.parserMode(db.Name),
	}
	if db.DatabaseName != "" {
		p.ServerDatabase = db.DatabaseName
	}
	if db.User != "" {
		p.ServerUser = db.User
	}
	if u.ServerUser != "" {
		p.ServerUser = u.ServerUser
	}
	switch {
	case u.ServerPassword != "":
		p.ServerPasswords = []string{u.ServerPassword}
	case db.Password != "":
		p.ServerPasswords = []string{db.Password}
	case len(p.ServerPasswords) == 0 && IsMD5(u.PasswordHash) && p.ServerUser == u.Name:
		p.ServerPasswords = []string{u.PasswordHash} // all that MD5 needs; the name is part of it
	}
	if p.External = c.external(u); p.External != nil {
		p.ServerPasswords = nil
	}
	return c.sized(p, u, db)
}

// DefaultAuthQuery is auth_query if that is not set.
const DefaultAuthQuery = "SELECT rolname, rolpassword, extract(epoch FROM rolvaliduntil) FROM pg_catalog.pg_authid WHERE rolname = $1 AND rolcanlogin"
