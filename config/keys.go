package config

import (
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// What a key's status tag says.
const (
	implemented = "implemented"
	ignored     = "ignored"
	refused     = "refused"
)

// key is one key of a table, as its struct tag describes it.
type key struct {
	name, alias, def, unit, env, status, doc      string
	values                                        []string // those it may have; nil for any
	harmless                                      []string // those that are as good as the default, besides it
	min, max                                      float64
	planned, own, restart, secret, required, null bool
	index                                         int // of the struct field
}

// optional reports whether the key can have no value.
func (k key) optional() bool { return k.null || k.def == "" && !k.required }

// choices are the values that the key may have, nil if it is not one of a few.
func (k key) choices(t reflect.Type) []string {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch t {
	case reflect.TypeFor[PoolerMode]():
		return poolerModes
	case reflect.TypeFor[AuthType]():
		return authTypes
	case reflect.TypeFor[ParserMode]():
		return parserModes
	case reflect.TypeFor[Recovery]():
		return recoveries
	case reflect.TypeFor[Passthrough]():
		return passthroughAuths
	case reflect.TypeFor[TLSVerify]():
		return tlsVerifies
	}
	return k.values
}

// variable is the name of the key's environment variable, empty if it has none.
func (k key) variable() string {
	switch k.env {
	case "-":
		return ""
	case "":
		return "PGDOG_" + strings.ToUpper(k.name)
	}
	return k.env
}

// readKeys is what keysOf has found, by type: a file can have thousands of tables.
var readKeys sync.Map

// keysOf returns what the tags of a table's struct say. It is not to be changed.
func keysOf(table reflect.Type) []key {
	if keys, ok := readKeys.Load(table); ok {
		return keys.([]key)
	}
	keys := readTags(table)
	readKeys.Store(table, keys)
	return keys
}

func readTags(table reflect.Type) []key {
	var keys []key
	for i := range table.NumField() {
		tag := table.Field(i).Tag
		name, ok := tag.Lookup("toml")
		if !ok {
			continue
		}
		k := key{
			name: name, alias: tag.Get("alias"), def: tag.Get("default"), unit: tag.Get("unit"), env: tag.Get("env"),
			status: tag.Get("status"), doc: tag.Get("doc"), planned: tag.Get("planned") == "yes", own: tag.Get("own") == "yes",
			restart: tag.Get("restart") == "yes", secret: tag.Get("secret") == "yes", required: tag.Get("required") == "yes",
			null: tag.Get("optional") == "yes", values: list(tag.Get("values")), harmless: list(tag.Get("harmless")),
			min: 0, max: math.Inf(1), index: i,
		}
		if s, ok := tag.Lookup("min"); ok {
			k.min, _ = strconv.ParseFloat(s, 64) // a test reads every tag
		}
		if s, ok := tag.Lookup("max"); ok {
			k.max, _ = strconv.ParseFloat(s, 64)
		}
		keys = append(keys, k)
	}
	return keys
}

func list(tag string) []string {
	if tag == "" {
		return nil
	}
	return strings.Split(tag, "|")
}

// table is one kind of table of a file.
type table struct {
	name, file string
	typ        reflect.Type
	list       bool // there can be several, as in [[databases]]
	fromEnv    bool // its keys have environment variables
	foreign    bool // what it holds is not kept
	refused    bool // it must not be there at all
	tolerant   bool // PgDog does not mind unknown keys in it
	doc        string
}

// The files.
const (
	configFile = "pgdog.toml"
	usersFile  = "users.toml"
)

// tables are all that PgDog has. [admin] can be in either file.
var tables = []table{
	{name: "general", file: configFile, typ: reflect.TypeFor[General](), fromEnv: true, doc: "what holds for everything that does not say otherwise"},
	{name: "databases", file: configFile, typ: reflect.TypeFor[Database](), list: true, doc: "one for each host of each database"},
	{name: "admin", file: configFile, typ: reflect.TypeFor[Admin](), fromEnv: true, doc: "the console; it can be in users.toml instead, which wins"},
	{name: "tcp", file: configFile, typ: reflect.TypeFor[TCP](), doc: "the sockets of clients and servers; TCP_NODELAY is always set"},
	{name: "memory", file: configFile, typ: reflect.TypeFor[Memory](), doc: "the memory of the process"},
	{name: "users", file: usersFile, typ: reflect.TypeFor[User](), list: true, doc: "one for each user that clients log in as"},
	{name: "query_parsers", file: configFile, typ: reflect.TypeFor[QueryParser](), list: true, doc: "query_parser by database"},
	{name: "replica_lag", file: configFile, typ: reflect.TypeFor[ReplicaLag](), tolerant: true, doc: "how far replicas may be behind; without this table it is only ban_replica_lag that limits that"},
	{name: "vault", file: configFile, typ: reflect.TypeFor[Vault](), doc: "HashiCorp Vault, which users with server_auth = \"vault_dynamic\" or \"vault_static\" get what servers are logged in with from"},
	{name: "otel", file: configFile, typ: reflect.TypeFor[otelTable](), foreign: true, doc: "sending of metrics by OTLP"},
	{name: "replication", file: configFile, typ: reflect.TypeFor[replicationTable](), foreign: true, tolerant: true, doc: "resharding"},
	{name: "rewrite", file: configFile, typ: reflect.TypeFor[rewriteTable](), foreign: true, doc: "rewriting of statements for shards"},
	{name: "plugins", file: configFile, typ: reflect.TypeFor[pluginTable](), foreign: true, list: true, refused: true, doc: "plugins that route statements"},
	{name: "multi_tenant", file: configFile, typ: reflect.TypeFor[multiTenantTable](), foreign: true, refused: true, tolerant: true, doc: "the check that statements keep to one tenant"},
	{name: "mirroring", file: configFile, typ: reflect.TypeFor[mirroringTable](), foreign: true, list: true, refused: true, doc: "copying of traffic to another database"},
	{name: "sharded_tables", file: configFile, typ: reflect.TypeFor[shardedTable](), foreign: true, list: true, refused: true, doc: "sharding"},
	{name: "omnisharded_tables", file: configFile, typ: reflect.TypeFor[omnishardedTable](), foreign: true, list: true, refused: true, tolerant: true, doc: "sharding"},
	{name: "sharded_mappings", file: configFile, typ: reflect.TypeFor[shardedMappingTable](), foreign: true, list: true, refused: true, doc: "sharding"},
	{name: "sharded_schemas", file: configFile, typ: reflect.TypeFor[shardedSchemaTable](), foreign: true, list: true, refused: true, tolerant: true, doc: "sharding"},
}

// tableNamed returns the table of a name.
func tableNamed(name string) table {
	return tables[slices.IndexFunc(tables, func(t table) bool { return t.name == name })]
}

// tablesIn are the names of the tables that a file may have.
func tablesIn(file string) []string {
	var names []string
	for _, t := range tables {
		if t.file == file || t.name == "admin" {
			names = append(names, t.name)
		}
	}
	return names
}
