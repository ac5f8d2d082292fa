package config

import (
	"fmt"
	"maps"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// databaseURL is a URL that makes a database and a user, and where it comes from.
type databaseURL struct{ from, text string }

// databaseURLs returns the URLs that were given and, behind them, those of the
// environment.
func (d *decoder) databaseURLs(given []string) []databaseURL {
	var urls []databaseURL
	for i, text := range given {
		urls = append(urls, databaseURL{"database URL " + strconv.Itoa(i+1), text})
	}
	for i := 1; ; i++ {
		name := "PGDOG_DATABASE_URL_" + strconv.Itoa(i)
		text, ok := d.env(name)
		if !ok || text == "" {
			return urls
		}
		urls = append(urls, databaseURL{name, text})
	}
}

// The query parameters of a database URL, by the table whose key they are.
var (
	databaseParameters = []string{"database_name", "role", "shard", "user", "password"}
	userParameters     = []string{"pool_size", "min_pool_size", "pooler_mode", "statement_timeout", "idle_timeout", "read_only", "server_lifetime", "server_lifetime_jitter"}
)

// fromURLs makes a database and a user of each URL, but no two that are the same.
func (d *decoder) fromURLs(c *Config, urls []databaseURL) {
	for _, u := range urls {
		dbTable, userTable, err := d.split(u)
		if err != nil {
			d.problem(place{file: u.from}, "", "", "%v", err)
			continue
		}
		var db Database
		var user User
		d.fill(tableNamed("databases"), dbTable, &db)
		d.fill(tableNamed("users"), userTable, &user)
		if !slices.ContainsFunc(c.Databases, func(other Database) bool { return reflect.DeepEqual(other, db) }) {
			c.Databases, d.databases = append(c.Databases, db), append(d.databases, dbTable)
		}
		if !slices.ContainsFunc(c.Users, func(other User) bool { return reflect.DeepEqual(other, user) }) {
			c.Users, d.users = append(c.Users, user), append(d.users, userTable)
		}
	}
}

// split turns a URL into what the files would hold. Its errors do not show the URL,
// which has a password in it.
func (d *decoder) split(u databaseURL) (db, user rawTable, err error) {
	db, user = rawTable{file: u.from}, rawTable{file: u.from}
	parsed, err := url.Parse(u.text)
	if err != nil {
		return db, user, fmt.Errorf("this is not a URL; characters that mean something in one are written as %%XX")
	}
	if parsed.Scheme != "postgres" && parsed.Scheme != "postgresql" {
		return db, user, fmt.Errorf("a database URL starts with postgres:// or postgresql://")
	}
	name := strings.TrimPrefix(parsed.Path, "/")
	if name == "" || parsed.Hostname() == "" || parsed.User.Username() == "" {
		return db, user, fmt.Errorf("a database URL has a user, a host and a database: postgres://user:password@host:port/database")
	}
	db.values = map[string]any{"name": name, "host": parsed.Hostname()}
	if p := parsed.Port(); p != "" {
		if db.values["port"], err = strconv.ParseInt(p, 10, 64); err != nil {
			return db, user, fmt.Errorf("%s is no port", p)
		}
	}
	user.values = map[string]any{"name": parsed.User.Username(), "database": name}
	if password, ok := parsed.User.Password(); ok {
		user.values["password"] = password
	}
	query, err := url.ParseQuery(parsed.RawQuery)
	if err != nil {
		return db, user, fmt.Errorf("what stands behind the question mark is not name=value&name=value")
	}
	for _, k := range slices.Sorted(maps.Keys(query)) {
		d.parameter(db, user, k, query.Get(k))
	}
	return db, user, nil
}

// parameter puts a query parameter into the table whose key it is.
func (d *decoder) parameter(db, user rawTable, name, text string) {
	at := place{file: db.file}
	switch {
	case slices.Contains(databaseParameters, name):
		d.typed(db, tableNamed("databases"), name, text)
	case slices.Contains(userParameters, name):
		d.typed(user, tableNamed("users"), name, text)
	case name == "sslmode":
		d.sslmode(at, text)
	default:
		d.problem(at, name, nearest(name, append(slices.Clone(databaseParameters), userParameters...)), "unknown parameter")
	}
}

// typed puts the text of a query parameter into a table as what a TOML file would
// hold.
func (d *decoder) typed(raw rawTable, kind table, name, text string) {
	k, _ := find(keysOf(kind.typ), name)
	t := kind.typ.Field(k.index).Type
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	raw.values[name] = text
	switch {
	case t.Kind() == reflect.Bool:
		if b, err := parseBool(text); err == nil {
			raw.values[name] = b
		}
	case t.Kind() == reflect.Int || t == durationType:
		if n, err := strconv.ParseInt(text, 10, 64); err == nil {
			raw.values[name] = n
		}
	}
}

// sslmode checks that tls_verify, which holds for all servers, is as strict as a URL
// wants it.
func (d *decoder) sslmode(at place, text string) {
	modes := map[string]TLSVerify{
		"disable": VerifyDisabled, "allow": VerifyDisabled, "prefer": VerifyDisabled, "require": VerifyCA, "verify-ca": VerifyCA, "verify-full": VerifyFull,
	}
	wanted, ok := modes[text]
	switch {
	case !ok:
		d.problem(at, "sslmode", nearest(text, slices.Sorted(maps.Keys(modes))), "%q is no sslmode", text)
	case d.verify < wanted:
		d.problem(at, "sslmode", "", "tls_verify is %s, which is less than %s: set it to %s", d.verify, text, wanted)
	}
}
