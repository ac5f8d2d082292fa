package config

import (
	"crypto/rand"
	"fmt"
	"slices"
	"strings"
)

// Source is where a configuration comes from.
type Source struct {
	ConfigPath, UsersPath string
	DatabaseURLs          []string                    // in place of databases and users of the files
	Env                   func(string) (string, bool) // as os.LookupEnv
}

// foreign are the tables of PgDog's that pgebb has no use for. Those that would do
// something that is missed are refused.
var foreign = map[string]struct {
	refused bool
	doc     string
}{
	"rewrite":            {false, "rewriting of statements for shards"},
	"plugins":            {true, "routing plugins"},
	"multi_tenant":       {true, "checks of a tenant column"},
	"replication":        {false, "settings of resharding"},
	"replica_lag":        {false, "checks of the replicas' lag; not implemented yet"},
	"mirroring":          {true, "copying of traffic to another database"},
	"otel":               {true, "pushing of metrics"},
	"vault":              {true, "secrets from Vault"},
	"query_parsers":      {false, "when SQL is parsed, by database; not implemented yet"},
	"sharded_tables":     {true, "sharding"},
	"omnisharded_tables": {true, "sharding"},
	"sharded_mappings":   {true, "sharding"},
	"sharded_schemas":    {true, "sharding"},
}

// ownTables are the tables that pgebb reads.
var ownTables = []string{"general", "databases", "admin", "tcp", "memory"}

// Load reads a configuration. With problems that are not warnings it must not be
// used; it is never nil.
func Load(src Source) (*Config, Problems) {
	d := &decoder{env: src.Env}
	if d.env == nil {
		d.env = func(string) (string, bool) { return "", false }
	}
	main, users := d.readFile(src.ConfigPath), d.readFile(src.UsersPath)
	c := &Config{}
	d.checkTables(main, append(slices.Clone(ownTables), tableNames(foreign)...))
	d.checkTables(users, []string{"users", "admin"})
	d.table("general", d.one(main, "general"), &c.General, true)
	d.table("tcp", d.one(main, "tcp"), &c.TCP, false)
	d.table("memory", d.one(main, "memory"), &c.Memory, false)
	d.admin(c, main, users)
	if urls := d.databaseURLs(src); len(urls) > 0 {
		d.fromURLs(c, urls)
	} else {
		d.lists(c, main, users)
	}
	c.index()
	return c, d.problems
}

func tableNames[V any](m map[string]V) []string {
	var names []string
	for name := range m {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// checkTables complains about tables that are not known or not supported.
func (d *decoder) checkTables(f rawFile, known []string) {
	for _, name := range tableNames(f.values) {
		at := f.placeOf(name)
		if !slices.Contains(known, name) {
			d.problem(at, name, nearest(name, known), "unknown table")
			continue
		}
		if t, ok := foreign[name]; ok && t.refused {
			d.problem(at, name, "", "pgebb does not do this (%s), and to ignore it would mislead: remove it", t.doc)
		} else if ok {
			d.warn(at, name, "this is ignored: %s", t.doc)
		}
	}
}

// one returns a table that can be there only once.
func (d *decoder) one(f rawFile, name string) rawTable {
	tables, err := f.tables(name)
	if err != nil {
		d.problem(f.placeOf(name), name, "", "%v", err)
		return rawTable{}
	}
	if len(tables) == 0 {
		return rawTable{}
	}
	if len(tables) > 1 {
		d.problem(tables[1].place, name, "", "the table is there more than once")
	}
	return tables[0]
}

func (d *decoder) admin(c *Config, main, users rawFile) {
	t := d.one(main, "admin")
	if u := d.one(users, "admin"); u.values != nil {
		t = u
	}
	d.table("admin", t, &c.Admin, true)
	if c.Admin.Password == "" {
		c.Admin.Password = "_pgebb_" + rand.Text()
	}
}

// lists reads [[databases]] and [[users]].
func (d *decoder) lists(c *Config, main, users rawFile) {
	tables, err := main.tables("databases")
	if err != nil {
		d.problem(main.placeOf("databases"), "databases", "", "%v", err)
	}
	for _, t := range tables {
		var db Database
		d.table("databases", t, &db, false)
		c.Databases = append(c.Databases, db)
		d.checkDatabase(t, db)
	}
	tables, err = users.tables("users")
	if err != nil {
		d.problem(users.placeOf("users"), "users", "", "%v", err)
	}
	for _, t := range tables {
		var u User
		d.table("users", t, &u, false)
		c.Users = append(c.Users, u)
		d.checkUser(t, c, u)
	}
	d.checkGeneral(c, d.one(main, "general"))
	d.checkDuplicates(c, main.path, users.path)
}

func (d *decoder) checkGeneral(c *Config, t rawTable) {
	d.checkPort(t, "general.port", c.General.Port)
	if c.General.DefaultPoolSize < 1 {
		d.problem(place{t.place.file, t.lines["default_pool_size"]}, "general.default_pool_size", "", "a pool needs room for at least one server")
	}
}

func (d *decoder) checkPort(t rawTable, path string, port int) {
	if port < 1 || port > 65535 {
		d.problem(place{t.place.file, t.lines["port"]}, path, "", "a port is between 1 and 65535")
	}
}

func (d *decoder) checkDatabase(t rawTable, db Database) {
	d.checkPort(t, "databases.port", db.Port)
	if db.PoolSize != nil && *db.PoolSize < 1 {
		d.problem(place{t.place.file, t.lines["pool_size"]}, "databases.pool_size", "", "a pool needs room for at least one server")
	}
	switch db.Role {
	case "replica":
		d.warn(t.place, "databases.role", "reads are not sent to replicas yet; database %q uses only its primary", db.Name)
	case "auto":
		d.warn(t.place, "databases.role", "the role of a server is not found out yet; %s counts as the primary of %q", db.Host, db.Name)
	}
}

func (d *decoder) checkUser(t rawTable, c *Config, u User) {
	if u.Database == "" && len(u.Databases) == 0 && !u.AllDatabases {
		d.warn(t.place, "users", "user %q may use no database: set database, databases or all_databases", u.Name)
	}
	if u.Password == "" && len(u.Passwords) == 0 && u.PasswordHash == "" && c.General.AuthType != AuthTrust {
		d.warn(t.place, "users", "user %q has no password, so nobody can log in as it (auth_type is %s)", u.Name, c.General.AuthType)
	}
	if u.PasswordHash != "" && !strings.HasPrefix(u.PasswordHash, "SCRAM-SHA-256$") && !strings.HasPrefix(u.PasswordHash, "md5") {
		d.problem(place{t.place.file, t.lines["password_hash"]}, "users.password_hash", "", "this is no SCRAM verifier; make one with: pgebb hash")
	}
	if u.PasswordHash != "" && strings.HasPrefix(u.PasswordHash, "SCRAM") && c.General.AuthType == AuthMD5 {
		d.warn(place{t.place.file, t.lines["password_hash"]}, "users.password_hash", "a SCRAM verifier cannot check an MD5 login, so nobody can log in as %q with it", u.Name)
	}
	for _, name := range append(slices.Clone(u.Databases), u.Database) {
		if name != "" && !slices.ContainsFunc(c.Databases, func(db Database) bool { return db.Name == name }) {
			var names []string
			for _, db := range c.Databases {
				names = append(names, db.Name)
			}
			d.warn(t.place, "users", "user %q is for database %q, which is not in [[databases]]%s", u.Name, name, didYouMean(name, names))
		}
	}
}

func didYouMean(word string, candidates []string) string {
	if s := nearest(word, candidates); s != "" {
		return fmt.Sprintf("; did you mean %q?", s)
	}
	return ""
}

func (d *decoder) checkDuplicates(c *Config, configPath, usersPath string) {
	primaries := map[string]bool{}
	for _, db := range c.Databases {
		if db.Role == "replica" {
			continue
		}
		if primaries[db.Name] {
			d.warn(place{file: configPath}, "databases", "database %q has more than one primary; the first is used", db.Name)
		}
		primaries[db.Name] = true
	}
	for _, db := range c.Databases {
		if !primaries[db.Name] {
			d.problem(place{file: configPath}, "databases", "", "database %q has replicas only, and reads are not sent to replicas yet: give it a primary", db.Name)
			primaries[db.Name] = true
		}
	}
	seen := map[login]bool{}
	for _, u := range c.Users {
		for _, name := range u.databases(c) {
			if seen[login{u.Name, name}] {
				d.warn(place{file: usersPath}, "users", "user %q is there more than once for database %q; the first entry is used", u.Name, name)
			}
			seen[login{u.Name, name}] = true
		}
	}
}
