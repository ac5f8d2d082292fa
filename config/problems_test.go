package config

import (
	"strings"
	"testing"
)

func TestProblems(t *testing.T) {
	for _, test := range []struct{ name, config, users, want string }{
		{"misspelt keys and values", `[general]
prot = 6432
pooler_mode = "transction"

load_balancing_strategy = "round_robbin"
[tcp]
keepalife = true
` + oneDatabase, oneUser, `
			pgdog.toml:2: general.prot: unknown key (did you mean "port"?)
			pgdog.toml:3: general.pooler_mode: "transction" is none of transaction, session, statement (did you mean "transaction"?)
			pgdog.toml:5: general.load_balancing_strategy: "round_robbin" is none of random, round_robin, least_active_connections, weighted_round_robin (did you mean "round_robin"?)
			pgdog.toml:7: tcp.keepalife: unknown key (did you mean "keepalive"?)`},
		{"misspelt tables", "port = 1\n[genral]\n[[users]]\n[quite_something_else]\n" + oneDatabase, "[[databases]]\n" + oneUser, `
			pgdog.toml:1: port: this key belongs into the table [general]
			pgdog.toml:2: genral: unknown table (did you mean "general"?)
			pgdog.toml:3: users: this table belongs into users.toml
			pgdog.toml:4: quite_something_else: unknown table
			users.toml:1: databases: this table belongs into pgdog.toml`},
		{"keys of lists", oneDatabase + "pool_sise = 1\n[[databases]]\nname = 'b'\nhots = 'h'\n", "[[users]]\nname = 'ann'\nall_databases = true\npasword = 'x'\n", `
			pgdog.toml:4: databases.pool_sise: unknown key (did you mean "pool_size"?)
			pgdog.toml:5: databases.host: the key is missing
			pgdog.toml:7: databases.hots: unknown key (did you mean "host"?)
			users.toml:1: some warning
			users.toml:4: users.pasword: unknown key (did you mean "password"?)`},
		{"wrong types", `[general]
host = 5
port = "6432"
workers = 1.5
query_timeout = true
log_connections = 1
mirror_exposure = "all"
tls_certificate = ["a"]
[[databases]]
name = ""
host = "h"
`, "[[users]]\nname = 'ann'\ndatabases = ['app', 7]\n", `
			pgdog.toml:2: general.host: the value must be a string, not 5
			pgdog.toml:3: general.port: the value must be a whole number that is not negative, not the string "6432"
			pgdog.toml:4: general.workers: the value must be a whole number that is not negative, not 1.5
			pgdog.toml:5: general.query_timeout: the value must be a number of milliseconds, not true
			pgdog.toml:6: general.log_connections: the value must be true or false, not 1
			pgdog.toml:7: general.mirror_exposure: the value must be a number, not the string "all"
			pgdog.toml:8: general.tls_certificate: the value must be a string, not a list
			pgdog.toml:10: databases.name: the value must not be empty
			users.toml:1: some warning
			users.toml:1: some warning
			users.toml:3: users.databases: the value must be a list of strings, and one of them is 7`},
		{"out of range", `[general]
port = 65536
default_pool_size = 0
connect_timeout = 0
checkout_timeout = -1
mirror_exposure = 1.5
query_cache_memory_limit = -5
` + oneDatabase + "port = 0\nlb_weight = 256\n", oneUser + "pool_size = 0\n", `
			pgdog.toml:2: general.port: the value must be between 1 and 65535, not 65536
			pgdog.toml:3: general.default_pool_size: the value must be at least 1, not 0
			pgdog.toml:4: general.connect_timeout: the value must be at least 1, not 0
			pgdog.toml:5: general.checkout_timeout: the value must be a number of milliseconds, not "-1"
			pgdog.toml:6: general.mirror_exposure: the value must be between 0 and 1, not 1.5
			pgdog.toml:7: general.query_cache_memory_limit: the value must be a number of bytes, not "-5"
			pgdog.toml:11: databases.port: the value must be between 1 and 65535, not 0
			pgdog.toml:12: databases.lb_weight: the value must be between 0 and 255, not 256
			users.toml:5: users.pool_size: the value must be at least 1, not 0`},
		{"a key under both of its names", "[general]\ndefault_pool_size = 1\nmax_pool_size = 2\n" + oneDatabase, oneUser, `
			pgdog.toml:3: general.max_pool_size: max_pool_size is another name of default_pool_size, and both are there`},
		{"tables of another kind", "general = 5\n[databases]\nname = 'app'\nhost = 'h'\n[[tcp]]\n[[tcp]]\n", oneUser, `
			pgdog.toml:1: general: this must be a table, not 5
			pgdog.toml:6: tcp: this table can be there only once: write it as [tcp]`},
		{"no list of tables", "databases = [5]\n", "users = ['a']\n", `
			pgdog.toml:1: databases: this must be a list of tables, and one of them is 5
			users.toml:1: users: this must be a list of tables, and one of them is the string "a"
			warning: there is no database, so there is nothing that clients can use but the console`},
		{"a path that no socket can have", "[general]\nunix_socket_dir = '/" + strings.Repeat("x", 100) + "'\n" + oneDatabase, oneUser, `
			pgdog.toml:2: general.unix_socket_dir: /` + strings.Repeat("x", 100) + `/.s.PGSQL.6432 is longer than the 107 bytes that a Unix socket's path may have`},
		{"no TOML", "[general]\nport = \n", oneUser, `
			pgdog.toml:2: this is not TOML: expected value but found '\n' instead`},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, problems := loadText(t, test.config, test.users, nil)
			expectSome(t, problems, test.want)
		})
	}
}

// expectSome is expect, but a wanted line that ends in "some warning" stands for any one
// warning of that line, as the warnings have a test of their own.
func expectSome(t *testing.T, problems Problems, want string) {
	t.Helper()
	var rest Problems
	for _, p := range problems {
		any := Problem{File: p.File, Line: p.Line, Message: "some warning"}.String()
		if p.Warning && strings.Contains(want, any) {
			want = strings.Replace(want, any, "", 1)
			continue
		}
		rest = append(rest, p)
	}
	expect(t, rest, want)
}

func TestRefusals(t *testing.T) {
	for _, test := range []struct{ config, users, want string }{
		{"[general]\ntwo_phase_commit = true", "", "pgdog.toml:2: general.two_phase_commit: this is not supported, and to ignore it would mislead: remove it or set it to false"},
		{"[general]\ntwo_phase_commit_auto = true", "", "pgdog.toml:2: general.two_phase_commit_auto: this is not supported, and to ignore it would mislead: remove it"},
		{"[replica_lag]\ncheck_interval = 5", "", "pgdog.toml:2: replica_lag.max_age: the key is missing, and check_interval is of no use without it"},
		{"[memory]\nlimit = 5", "", "pgdog.toml:2: memory.limit: 5 bytes are too few to work with: it must be at least 33554432; 0 is no limit"},
		{"[rewrite]\nenabled = true", "", "pgdog.toml:2: rewrite.enabled: this is not supported, and to ignore it would mislead: remove it or set it to false"},
		{oneDatabase + "shard = 1", "", "pgdog.toml:4: databases.shard: this is not supported, and to ignore it would mislead: remove it or set it to 0"},
		{oneDatabase + "resharding_only = true", "", "pgdog.toml:4: databases.resharding_only: this is not supported, and to ignore it would mislead: remove it or set it to false"},
		{"[[plugins]]\nname = 'a'", "", "pgdog.toml:1: plugins: pgebb does not have this (plugins that route statements), and to ignore it would mislead: remove it"},
		{"[multi_tenant]\ncolumn = 'a'", "", "pgdog.toml:1: multi_tenant: pgebb does not have this (the check that statements keep to one tenant), and to ignore it would mislead: remove it"},
		{"[[mirroring]]\nsource_db = 'a'", "", "pgdog.toml:1: mirroring: pgebb does not have this (copying of traffic to another database), and to ignore it would mislead: remove it"},
		{"[vault]\nauth_method = 'approle'\napprole_role_id = 'r'\napprole_secret_id_file = 'f'", "", "pgdog.toml:1: vault.url: the key is missing"},
		{"[vault]\nurl = 'vault:8200'\nauth_method = 'kubernetes'\nkubernetes_role = 'r'", "", "pgdog.toml:2: vault.url: this must be like https://vault.internal:8200"},
		{"[vault]\nurl = 'https://u:p@v'\nauth_method = 'kubernetes'\nkubernetes_role = 'r'", "", "pgdog.toml:2: vault.url: this must be like https://vault.internal:8200"},
		{"[vault]\nurl = 'https://v'", "", "pgdog.toml:1: vault.auth_method: the key is missing"},
		{"[general]\ntls_verify = 'disabled'", oneUser + "server_auth = 'rds_iam'", "users.toml:5: users.server_auth: rds_iam needs TLS to servers, and tls_verify is disabled"},
		{"[general]\npassthrough_auth = 'enabled_plain'", oneUser + "server_auth = 'azure_workload_identity'", "users.toml:5: users.server_auth: azure_workload_identity does not go with passthrough_auth, which is enabled_plain"},
		{"[[sharded_tables]]\nname = 'a'\n[[sharded_tables.mapping]]\nshard = 1", "", "pgdog.toml:1: sharded_tables: pgebb does not have this (sharding), and to ignore it would mislead: remove it"},
		{"[[omnisharded_tables]]\ndatabase = 'a'", "", "pgdog.toml:1: omnisharded_tables: pgebb does not have this (sharding), and to ignore it would mislead: remove it"},
		{"[[sharded_mappings]]\ndatabase = 'a'", "", "pgdog.toml:1: sharded_mappings: pgebb does not have this (sharding), and to ignore it would mislead: remove it"},
		{"[[sharded_schemas]]\ndatabase = 'a'", "", "pgdog.toml:1: sharded_schemas: pgebb does not have this (sharding), and to ignore it would mislead: remove it"},
		{"", oneUser + "replication_mode = true", "users.toml:5: users.replication_mode: this is not supported, and to ignore it would mislead: remove it or set it to false"},
		{"", oneUser + "replication_sharding = 'a'", "users.toml:5: users.replication_sharding: this is not supported, and to ignore it would mislead: remove it"},
		{"", oneUser + "two_phase_commit = true", "users.toml:5: users.two_phase_commit: this is not supported, and to ignore it would mislead: remove it or set it to false"},
		{"", oneUser + "two_phase_commit_auto = true", "users.toml:5: users.two_phase_commit_auto: this is not supported, and to ignore it would mislead: remove it"},
		{"[general]\nopenmetrics_namespace = 'my-'", "", "pgdog.toml:2: general.openmetrics_namespace: \"my-\" cannot be in front of a metric's name, which has letters, digits and underscores, and does not begin with a digit"},
		{"", oneUser + "password_hash = 'SCRAM-SHA-256$4096:c2FsdA==$a:b'", "users.toml:5: users.password_hash: this is no SCRAM verifier; make one with: pgebb hash"},
		{"", oneUser + "password_hash = 'guess'", "users.toml:5: users.password_hash: this is no SCRAM verifier; make one with: pgebb hash"},
	} {
		config, users := test.config, test.users
		if !strings.HasPrefix(config, oneDatabase) {
			config += "\n" + oneDatabase
		}
		if users == "" {
			users = oneUser
		}
		_, problems := loadText(t, config, users, nil)
		expect(t, problems, test.want)
	}
}

// TestEveryRefusedKeyHasItsCase keeps TestRefusals complete: a refused key is one
// whose value, other than the default, is an error.
func TestEveryRefusedKeyHasItsCase(t *testing.T) {
	for _, table := range tables {
		for _, k := range keysOf(table.typ) {
			ft := table.typ.Field(k.index).Type
			if k.status != refused || table.refused || ft == stringsType {
				continue
			}
			value, _ := samples(k, ft)
			if kind := typeName(ft); kind == "string" {
				value = "'" + value + "'"
			}
			head := "[" + table.name + "]\n"
			config, users := oneDatabase, oneUser
			switch {
			case table.name == "users":
				users += k.name + " = " + value
			case table.name == "databases":
				config += k.name + " = " + value
			default:
				config = head + k.name + " = " + value + "\n" + oneDatabase
			}
			_, problems := loadText(t, config, users, nil)
			if len(problems) != 1 || problems[0].Warning || problems[0].Key != table.name+"."+k.name {
				t.Errorf("%s.%s = %s gives %q", table.name, k.name, value, told(problems))
			}
		}
	}
}

// TestDefaultsAreAlwaysAccepted sets every key of [general] to its default.
func TestDefaultsAreAlwaysAccepted(t *testing.T) {
	var b strings.Builder
	b.WriteString("[general]\n")
	c := mustLoad(t, "", "", nil)
	for _, row := range c.Rows() {
		k, ok := find(keysOf(tableNamed("general").typ), row.Name)
		if !ok || k.optional() {
			continue
		}
		value := k.def
		switch typeName(tableNamed("general").typ.Field(k.index).Type) {
		case "string":
			value = "'" + value + "'"
		case "number":
			value = strings.Replace(value, "off", "9223372036854775807", 1)
		}
		if k.choices(tableNamed("general").typ.Field(k.index).Type) != nil {
			value = "'" + strings.Trim(value, "'") + "'"
		}
		b.WriteString(k.name + " = " + value + "\n")
	}
	again, problems := loadText(t, b.String()+oneDatabase, oneUser, nil)
	expect(t, problems, "")
	if again.General != c.General {
		t.Errorf("with all defaults set [general] is\n%+v\nwithout\n%+v", again.General, c.General)
	}
}

func TestHarmlessValues(t *testing.T) {
	_, problems := loadText(t, "[general]\nprepared_statements = 'disabled'\ntls_verify = 'disabled'\ncross_shard_disabled = true\n"+oneDatabase,
		oneUser+"cross_shard_disabled = true\n", nil)
	expect(t, problems, "")
}

func TestSecretsAreNotTold(t *testing.T) {
	const secret = "314159265"
	for _, test := range []struct{ config, users, url string }{
		{config: "[admin]\npassword = " + secret},
		{config: oneDatabase + "password = " + secret},
		{users: "[[users]]\nname = 'a'\npassword = " + secret},
		{users: "[[users]]\nname = 'a'\npasswords = ['x', " + secret + "]"},
		{users: "[[users]]\nname = 'a'\nserver_password = " + secret},
		{users: "[[users]]\nname = 'a'\npassword_hash = '" + secret + "'"},
		{users: "[[users]]\nname = 'a'\npassword = '" + secret},
		{users: "[[users]]\nname = 'a'\npassword = " + secret + "x"},
		{config: "[otel]\ndatadog_api_key = " + secret},
		{url: "postgres://a:" + secret + "%@h/d"},
		{url: "postgres://a:" + secret + "@h:port/d"},
		{url: "mysql://a:" + secret + "@h/d"},
		{url: "postgres://a:" + secret + "@h/d?wrong=1"},
	} {
		var urls []string
		if test.url != "" {
			urls = append(urls, test.url)
		}
		c, problems := loadText(t, test.config, test.users, nil, urls...)
		if problems.Err() == nil {
			t.Errorf("%+v has no error", test)
		}
		for _, p := range told(problems) {
			if strings.Contains(p, secret) {
				t.Errorf("%+v: a problem tells it: %s", test, p)
			}
		}
		for _, r := range c.Rows() {
			if strings.Contains(r.Value, secret) {
				t.Errorf("%+v: SHOW CONFIG has %v", test, r)
			}
		}
	}
}

func TestNearest(t *testing.T) {
	candidates := []string{"port", "host", "pool_size", "min_pool_size", "idle_timeout"}
	for word, want := range map[string]string{
		"prot": "port", "Host": "host", "poolsize": "pool_size", "idle_time_out": "idle_timeout", "min_poolsize": "min_pool_size",
		"zebra": "", "": "", "x": "",
	} {
		if got := nearest(word, candidates); got != want {
			t.Errorf("the nearest to %q is %q, want %q", word, got, want)
		}
	}
}
