package config

import (
	"encoding/base64"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// check looks for what is wrong with a configuration whose keys and values are all
// right each for itself.
func (d *decoder) check(c *Config, general rawTable) {
	d.checkGeneral(c, general)
	d.checkDatabases(c)
	d.checkUsers(c)
	d.checkExternal(c)
	d.checkReach(c)
	d.checkLookups(c, general)
}

// maxsocketPath is the longest path of a Unix socket that Linux takes
// (sockaddr_un.sun_path, less the final zero).
const maxsocketPath = 107

// metricPrefix is what the name of a metric can begin with.
var metricPrefix = regexp.MustCompile(`^[a-zA-Z_][a-zA-Z0-9_]*$`)

func (d *decoder) checkGeneral(c *Config, raw rawTable) {
	g := &c.General
	if path := socketPath(g.UnixSocketDir, g.Port); g.UnixSocketDir != "" && len(path) > maxsocketPath {
		d.problem(raw.placeOf("unix_socket_dir"), "general.unix_socket_dir", "",
			"%s is longer than the %d bytes that a Unix socket's path may have", path, maxsocketPath)
	}
	if n := g.OpenmetricsNamespace; n != "" && !metricPrefix.MatchString(n) {
		d.problem(raw.placeOf("openmetrics_namespace"), "general.openmetrics_namespace", "",
			"%q cannot be in front of a metric's name, which has letters, digits and underscores, and does not begin with a digit", n)
	}
	if g.StatsPeriod < time.Second {
		d.warn(raw.placeOf("stats_period"), "general.stats_period", "%d ms is too short for averages, so a second is used", g.StatsPeriod.Milliseconds())
	}
	if g.PubSubChannelSize > 0 && g.QueryParser == ParserOff {
		d.warn(raw.placeOf("pub_sub_channel_size"), "general.pub_sub_channel_size", "where query_parser is off a LISTEN is not seen, so this does nothing there")
	}
	if g.MinPoolSize > g.DefaultPoolSize {
		d.warn(raw.placeOf("min_pool_size"), "general.min_pool_size", "%d is above default_pool_size, which is %d and holds", g.MinPoolSize, g.DefaultPoolSize)
	}
	if _, ok := parseLevel(g.LogLevel); !ok {
		d.warn(raw.placeOf("log_level"), "general.log_level", "%q has none of %s for everything, so info is used%s",
			g.LogLevel, strings.Join(logLevels, ", "), didYouMean(g.LogLevel, logLevels))
	}
}

// leastMemory is what the process needs in bytes when it has hardly anything to do, twice.
const leastMemory = 32 << 20

func (d *decoder) checkMemory(c *Config, raw rawTable) {
	if n := c.Memory.Limit; n > 0 && n < leastMemory {
		d.problem(raw.placeOf("limit"), "memory.limit", "", "%d bytes are too few to work with: it must be at least %d; 0 is no limit", n, leastMemory)
	}
}

func (d *decoder) checkDatabases(c *Config) {
	for i := range c.Databases {
		db, at := &c.Databases[i], d.databases[i].place()
		if db.Name == "" {
			continue // told already
		}
		d.checkSizes(d.databases[i], "databases", db.PoolSize, db.MinPoolSize)
		if db.Name == c.Admin.Name {
			d.warn(at, "databases.name", "clients that ask for database %q get the console, whose name it is", db.Name)
		}
	}
	d.checkRoles(c)
}

// checkSizes complains about a minimum that does not fit into its pool.
func (d *decoder) checkSizes(raw rawTable, table string, size, least *int) {
	if size != nil && least != nil && *least > *size {
		d.warn(raw.placeOf("min_pool_size"), table+".min_pool_size", "%d is above pool_size, which is %d and holds", *least, *size)
	}
}

func (d *decoder) checkUsers(c *Config) {
	seen := map[login]bool{}
	var databases []string
	for _, db := range c.Databases {
		databases = append(databases, db.Name)
	}
	for i := range c.Users {
		u, raw := &c.Users[i], d.users[i]
		if u.Name == "" {
			continue // told already
		}
		d.checkSizes(raw, "users", u.PoolSize, u.MinPoolSize)
		d.checkPassword(c, u, raw)
		names := u.databases(c)
		if len(names) == 0 {
			d.warn(raw.place(), "users", "user %q may use no database: set database, databases or all_databases", u.Name)
		}
		for _, name := range names {
			if !c.HasDatabase(name) {
				d.warn(raw.placeOf("database", "databases"), "users.database", "user %q is for database %q, which is not in [[databases]]%s",
					u.Name, name, didYouMean(name, databases))
			}
			if seen[login{u.Name, name}] {
				d.warn(raw.place(), "users", "user %q is there more than once for database %q: the first entry is used", u.Name, name)
			}
			seen[login{u.Name, name}] = true
		}
	}
}

// checkPassword looks at how clients log in as a user, and its servers.
func (d *decoder) checkPassword(c *Config, u *User, raw rawTable) {
	at := raw.placeOf("password_hash")
	isScram, isMD5 := isVerifier(u.PasswordHash), IsMD5(u.PasswordHash)
	auth, hasPassword := c.General.AuthType, len(u.passwords()) > 0
	switch {
	case u.PasswordHash != "" && !isScram && !isMD5:
		d.problem(at, "users.password_hash", "", "this is no SCRAM verifier; make one with: pgebb hash")
		return
	case u.VaultPath != "":
	case auth == AuthTrust, c.findsOut() && u.PasswordHash == "" && !hasPassword:
	case u.Identity != "" && c.ClientTLS.Authorities == nil:
		d.warn(raw.placeOf("identity"), "users.identity", "without tls_client_ca_certificate nobody is asked for a certificate, so it does not help user %q", u.Name)
	case u.Identity != "" && u.PasswordHash == "" && !hasPassword:
	case u.PasswordHash == "" && !hasPassword:
		d.warn(raw.place(), "users", "user %q has no password, so nobody can log in as it (auth_type is %s)", u.Name, auth)
	case hasPassword:
	case isScram && auth == AuthMD5, isMD5 && auth == AuthScram:
		d.warn(at, "users.password_hash", "auth_type %s cannot be checked against this kind of hash, so nobody can log in as %q", auth, u.Name)
	}
	if u.PasswordHash == "" || hasPassword || u.external() || u.ServerPassword != "" || isScram && auth == AuthScram {
		return // with SCRAM, what a client's login leaves is good for servers with the same hash
	}
	for _, name := range u.databases(c) {
		if slices.ContainsFunc(c.hosts[name], func(db *Database) bool { return len(c.effective(u, db).ServerPasswords) == 0 }) {
			d.warn(at, "users.password_hash", "the servers of user %q have no password, since a hash is none: without server_password Postgres must let them in without", u.Name)
		}
	}
}

// checkReach looks for what nobody can use.
func (d *decoder) checkReach(c *Config) {
	reached := map[string]bool{}
	for _, p := range c.pools {
		reached[p.Database] = true
	}
	for i, db := range c.Databases {
		if db.Name != "" && !reached[db.Name] && !c.findsOut() {
			d.warn(d.databases[i].place(), "databases.name", "no user may use database %q", db.Name)
			reached[db.Name] = true
		}
	}
	if len(c.pools) == 0 && len(c.Databases) == 0 {
		d.warn(place{}, "", "there is no database, so there is nothing that clients can use but the console")
	}
}

// IsMD5 reports whether a text is the hash of a password as Postgres stores it with
// password_encryption = md5. What has this form is no password to Postgres either.
func IsMD5(text string) bool {
	digits, found := strings.CutPrefix(text, "md5")
	return found && len(digits) == 32 && strings.Trim(digits, "0123456789abcdef") == ""
}

// isVerifier reports whether a text is a SCRAM verifier as Postgres stores it:
// SCRAM-SHA-256$iterations:salt$StoredKey:ServerKey, with the last three in base64.
func isVerifier(text string) bool {
	parts := strings.Split(text, "$")
	if len(parts) != 3 || parts[0] != "SCRAM-SHA-256" {
		return false
	}
	iterations, salt, ok := strings.Cut(parts[1], ":")
	stored, server, ok2 := strings.Cut(parts[2], ":")
	n, err := strconv.Atoi(iterations)
	if !ok || !ok2 || err != nil || n < 1 || salt == "" {
		return false
	}
	for encoded, size := range map[string]int{salt: 0, stored: 32, server: 32} {
		b, err := base64.StdEncoding.DecodeString(encoded)
		if err != nil || size > 0 && len(b) != size {
			return false
		}
	}
	return true
}

// findsOut reports whether there may be users that are in no file.
func (c *Config) findsOut() bool {
	return c.General.AuthUser != "" || c.General.PassthroughAuth != PassNothing
}

// checkLookups looks at how such users are found out.
func (d *decoder) checkLookups(c *Config, raw rawTable) {
	g := &c.General
	if db := g.AuthDBName; db != "" && !c.HasDatabase(db) {
		d.problem(placeOfValue(raw, "auth_dbname"), "general.auth_dbname", "", "database %q is not in [[databases]]", db)
	}
	if g.AuthUser == "" && (g.AuthQuery != "" || g.AuthDBName != "" || g.AuthPassword != "") {
		d.problem(raw.placeOf("auth_query", "auth_dbname", "auth_password"), "general.auth_user", "", "without it nobody looks up passwords, and auth_query, auth_dbname and auth_password are of no use")
	}
	if p := g.PassthroughAuth; p != PassNothing && !p.Plain() && g.TLSCertificate == "" {
		d.warn(placeOfValue(raw, "passthrough_auth"), "general.passthrough_auth", "passwords are passed on only over TLS, and there is no tls_certificate")
	}
}
