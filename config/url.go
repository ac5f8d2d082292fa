package config

import (
	"fmt"
	"net/url"
	"reflect"
	"strconv"
	"strings"
)

// databaseURLs returns the URLs of the command line and, behind them, of the
// environment.
func (d *decoder) databaseURLs(src Source) []string {
	urls := append([]string(nil), src.DatabaseURLs...)
	for i := 1; ; i++ {
		u, ok := d.env("PGDOG_DATABASE_URL_" + strconv.Itoa(i))
		if !ok {
			return urls
		}
		urls = append(urls, u)
	}
}

// urlOnDatabase are the query parameters that belong to the database; the others
// belong to its user as well.
var urlOnDatabase = map[string]bool{"database_name": true, "role": true, "shard": true}

// fromURLs makes a database and a user of each URL.
func (d *decoder) fromURLs(c *Config, urls []string) {
	for i, text := range urls {
		at := place{file: "database URL " + strconv.Itoa(i+1)}
		db, u, err := d.fromURL(at, text)
		if err != nil {
			d.problem(at, "", "", "%v", err)
			continue
		}
		c.Databases = append(c.Databases, db)
		c.Users = append(c.Users, u)
	}
}

func (d *decoder) fromURL(at place, text string) (db Database, u User, err error) {
	parsed, err := url.Parse(text)
	if err != nil {
		return db, u, fmt.Errorf("this is not a URL") // the error would show the password
	}
	if parsed.Scheme != "postgres" && parsed.Scheme != "postgresql" {
		return db, u, fmt.Errorf("a database URL starts with postgres:// or postgresql://, not %q", parsed.Scheme)
	}
	name := strings.TrimPrefix(parsed.Path, "/")
	if name == "" || parsed.Hostname() == "" || parsed.User == nil {
		return db, u, fmt.Errorf("a database URL has a user, a host and a database: postgres://user:password@host:port/database")
	}
	password, _ := parsed.User.Password()
	dbTable := map[string]any{"name": name, "host": parsed.Hostname()}
	if p := parsed.Port(); p != "" {
		dbTable["port"], _ = strconv.ParseInt(p, 10, 64) // url.Parse has checked it
	}
	userTable := map[string]any{"name": parsed.User.Username(), "database": name, "password": password}
	for k, values := range parsed.Query() {
		value, table := values[len(values)-1], userTable
		if urlOnDatabase[k] || k == "user" || k == "password" {
			table = dbTable
		}
		v, err := typed(table, k, value, dbTable)
		if err != nil {
			return db, u, err
		}
		table[k] = v
	}
	d.table("databases", rawTable{place: at, values: dbTable}, &db, false)
	d.table("users", rawTable{place: at, values: userTable}, &u, false)
	return db, u, nil
}

// typed turns the text of a query parameter into what a TOML file would hold.
func typed(table map[string]any, name, text string, dbTable map[string]any) (any, error) {
	t := reflect.TypeFor[User]()
	if reflect.ValueOf(table).Pointer() == reflect.ValueOf(dbTable).Pointer() {
		t = reflect.TypeFor[Database]()
	}
	for _, k := range keysOf(t) {
		if k.name != name {
			continue
		}
		ft := t.Field(k.index).Type
		if ft.Kind() == reflect.Pointer {
			ft = ft.Elem()
		}
		switch {
		case ft.Kind() == reflect.Bool:
			return parseBool(text)
		case ft.Kind() == reflect.Int || ft.Kind() == reflect.Int64:
			n, err := strconv.ParseInt(text, 10, 64)
			if err != nil {
				return nil, fmt.Errorf("parameter %s: %q is not a number", name, text)
			}
			return n, nil
		}
	}
	return text, nil
}
