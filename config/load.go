package config

import (
	"crypto/rand"
	"os"
	"reflect"
	"slices"
	"strconv"
	"sync"
)

// Source is where a configuration comes from.
type Source struct {
	ConfigPath, UsersPath string
	DatabaseURLs          []string                    // in place of databases and users of the files
	Env                   func(string) (string, bool) // as os.LookupEnv; nil for an empty environment
}

// Load reads a configuration. With problems that are not warnings it must not be
// used; it is never nil.
func Load(src Source) (*Config, Problems) {
	d := &decoder{env: src.Env}
	if d.env == nil {
		d.env = func(string) (string, bool) { return "", false }
	}
	main, users := d.readFile(src.ConfigPath), d.readFile(src.UsersPath)
	return d.config(main, users, src.DatabaseURLs), d.result()
}

// config makes a configuration of two files and what the environment adds.
func (d *decoder) config(main, users rawTable, databaseURLs []string) *Config {
	c := &Config{}
	d.checkTables(main, configFile)
	d.checkTables(users, usersFile)
	general := d.one(main, "general")
	d.fill(tableNamed("general"), general, &c.General)
	d.verify = c.General.TLSVerify
	d.fill(tableNamed("tcp"), d.one(main, "tcp"), &c.TCP)
	memory := d.one(main, "memory")
	d.fill(tableNamed("memory"), memory, &c.Memory)
	d.checkMemory(c, memory)
	d.replicaLag(c, main)
	d.readVault(c, main)
	d.admin(c, main, users)
	if urls := d.databaseURLs(databaseURLs); len(urls) > 0 {
		d.fromURLs(c, urls)
	} else {
		d.lists(c, main, users)
	}
	d.queryParsers(c, main)
	d.mirroring()
	d.checkFiles()
	c.origins = d.origins
	c.index()
	if !d.broken {
		d.certificates(c, general)
		d.check(c, general)
	}
	return c
}

// checkTables looks for what is not to be in a file, and at the tables whose
// contents are not kept.
func (d *decoder) checkTables(f rawTable, file string) {
	known := tablesIn(file)
	for _, name := range f.keys() {
		at := f.placeOf(name)
		if !slices.Contains(known, name) {
			d.unknownTable(at, name, file)
			continue
		}
		kind := tableNamed(name)
		if !kind.foreign {
			continue // Load reads it
		}
		if kind.refused {
			d.problem(at, name, "", "pgebb does not have this (%s), and to ignore it would mislead: remove it", kind.doc)
		}
		for _, raw := range d.tables(f, name) {
			if kind.refused {
				d.checkKeys(kind, raw)
			} else {
				d.fill(kind, raw, reflect.New(kind.typ).Interface())
			}
		}
	}
}

// unknownTable complains about a name at the top of a file.
func (d *decoder) unknownTable(at place, name, file string) {
	known := tablesIn(file)
	i := slices.IndexFunc(tables, func(t table) bool { return t.name == name })
	_, isKey := find(keysOf(tableNamed("general").typ), name)
	switch {
	case i >= 0:
		d.problem(at, name, "", "this table belongs into %s", tables[i].file)
	case isKey && file == configFile:
		d.problem(at, name, "", "this key belongs into the table [general]")
	default:
		d.problem(at, name, nearest(name, known), "unknown table")
	}
}

// checkKeys looks for unknown keys in a table that is refused anyway.
func (d *decoder) checkKeys(kind table, raw rawTable) {
	keys := keysOf(kind.typ)
	for _, name := range raw.keys() {
		if _, ok := find(keys, name); !ok {
			d.unknown(kind, raw.placeOf(name), name, keys)
		}
	}
}

// randomPassword is what the console has if nobody sets one, the same at a reload.
var randomPassword = sync.OnceValue(func() string { return "_pgebb_" + rand.Text() })

func (d *decoder) admin(c *Config, main, users rawTable) {
	raw, other := d.one(main, "admin"), d.one(users, "admin")
	if other.values != nil {
		raw = other
	}
	d.fill(tableNamed("admin"), raw, &c.Admin)
	if c.Admin.Password == "" {
		c.Admin.Password = randomPassword()
	}
}

// lists reads [[databases]] and [[users]].
func (d *decoder) lists(c *Config, main, users rawTable) {
	d.databases, d.users = d.tables(main, "databases"), d.tables(users, "users")
	c.Databases, c.Users = make([]Database, len(d.databases)), make([]User, len(d.users))
	for i, raw := range d.databases {
		d.fill(tableNamed("databases"), raw, &c.Databases[i])
	}
	for i, raw := range d.users {
		d.fill(tableNamed("users"), raw, &c.Users[i])
	}
}

// replicaLag reads [replica_lag]. As to PgDog, an interval alone says nothing.
func (d *decoder) replicaLag(c *Config, main rawTable) {
	raw := d.one(main, "replica_lag")
	if raw.values == nil {
		return
	}
	c.ReplicaLag = &ReplicaLag{}
	d.fill(tableNamed("replica_lag"), raw, c.ReplicaLag)
	_, interval := raw.values["check_interval"]
	if _, age := raw.values["max_age"]; interval && !age {
		d.problem(raw.placeOf("check_interval"), "replica_lag.max_age", "", "the key is missing, and check_interval is of no use without it")
	}
}

// checkFiles looks who can read the files that have passwords.
func (d *decoder) checkFiles() {
	for _, path := range d.secrets {
		if info, err := os.Stat(path); err == nil && info.Mode()&0o004 != 0 {
			d.warn(place{file: path}, "", "everybody on this machine can read the file, and it has passwords: chmod o-r")
		}
	}
}

// queryParsers reads [[query_parsers]].
func (d *decoder) queryParsers(c *Config, main rawTable) {
	for _, raw := range d.tables(main, "query_parsers") {
		var q QueryParser
		d.fill(tableNamed("query_parsers"), raw, &q)
		if q.Database != "" && !slices.ContainsFunc(c.Databases, func(db Database) bool { return db.Name == q.Database }) {
			d.warn(raw.placeOf("database"), "query_parsers.database", "there is no database %q", q.Database)
		}
		c.QueryParsers = append(c.QueryParsers, q)
	}
}

// mirroring refuses what PgDog takes for [[mirroring]] from the environment.
func (d *decoder) mirroring() {
	for i := 1; ; i++ {
		name := "PGDOG_MIRRORING_" + strconv.Itoa(i)
		if text, ok := d.env(name); !ok || text == "" {
			return
		}
		d.problem(place{file: "environment"}, name, "", "pgebb does not have this (%s), and to ignore it would mislead: remove it", tableNamed("mirroring").doc)
	}
}
