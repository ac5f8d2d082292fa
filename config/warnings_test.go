package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestFilesWithPasswordsThatEverybodyCanRead(t *testing.T) {
	const warning = "everybody on this machine can read the file, and it has passwords"
	for _, test := range []struct {
		name, config, users       string
		configMode, usersMode     os.FileMode
		configWarned, usersWarned bool
	}{
		{"nobody else can", oneDatabase + "password = 'x'\n", oneUser, 0o600, 0o640, false, false},
		{"users", oneDatabase, oneUser, 0o644, 0o644, false, true},
		{"databases", oneDatabase + "password = 'x'\n", oneUser, 0o644, 0o600, true, false},
		{"the console", "[admin]\npassword = 'x'\n" + oneDatabase, "", 0o604, 0o644, true, false},
		{"no password", "[admin]\npassword = ''\n" + oneDatabase, "[[users]]\nname = 'ann'\ndatabase = 'app'\n", 0o644, 0o644, false, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			dir := t.TempDir()
			src := Source{ConfigPath: filepath.Join(dir, "pgdog.toml"), UsersPath: filepath.Join(dir, "users.toml")}
			write := func(path, text string, mode os.FileMode) {
				if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
				if err := os.Chmod(path, mode); err != nil { // the umask has no say
					t.Fatal(err)
				}
			}
			write(src.ConfigPath, test.config, test.configMode)
			write(src.UsersPath, test.users, test.usersMode)
			_, problems := Load(src)
			warned := map[string]bool{}
			for _, p := range problems {
				if strings.Contains(p.Message, warning) && p.Warning {
					warned[p.File] = true
				}
			}
			if warned[src.ConfigPath] != test.configWarned || warned[src.UsersPath] != test.usersWarned {
				t.Errorf("the warnings are %v", problems)
			}
		})
	}
}

func TestWarnings(t *testing.T) {
	const scram = "SCRAM-SHA-256$4096:AAECAwQFBgcICQoLDA0ODw==$lzjimAPnIeov+dqCs/uVy1700PwQevRa8t3m881dxCs=:yv7pdPM+u1PvNMRconP/GOPtNqM0oq6Hw363MOCm1s8="
	const md5 = "md5aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
	for _, test := range []struct{ name, config, users, want string }{
		{"keys that are ignored, once each", `[general]
query_parser = "on"
dry_run = true
` + oneDatabase + "[[query_parsers]]\ndatabase = 'a'\nlevel = 'on'\n[[query_parsers]]\ndatabase = 'b'\nlevel = 'on'\n", "[[users]]\nname = 'ann'\nall_databases = true\npassword = 'x'\n", `
			warning: pgdog.toml:3: general.dry_run: this is not supported and is ignored
			warning: pgdog.toml:8: query_parsers.database: there is no database "a"
			warning: pgdog.toml:11: query_parsers.database: there is no database "b"`},
		{"values that are stretched", "[general]\nstats_period = 500\nmin_pool_size = 20\n" + oneDatabase, oneUser, `
			warning: pgdog.toml:2: general.stats_period: 500 ms is too short for averages, so a second is used
			warning: pgdog.toml:3: general.min_pool_size: 20 is above default_pool_size, which is 10 and holds`},
		{"LISTEN that is not seen", "[general]\npub_sub_channel_size = 5\nquery_parser = 'off'\n" + oneDatabase, oneUser, `
			warning: pgdog.toml:2: general.pub_sub_channel_size: where query_parser is off a LISTEN is not seen, so this does nothing there`},
		{"tables that are ignored", oneDatabase + `
[replication]
pg_dump_path = "/bin/pg_dump"
pg_dmp_path = 1
[replica_lag]
max_age = 1000
max_aeg = 1000
[otel]
endpoint = "http://x"
headers = {a = "b"}
[[query_parsers]]
database = "app"
level = "off"
`, oneUser, `
			warning: pgdog.toml:6: replication.pg_dump_path: this is not supported and is ignored
			warning: pgdog.toml:7: replication.pg_dmp_path: unknown key; did you mean "pg_dump_path"?
			warning: pgdog.toml:10: replica_lag.max_aeg: unknown key; did you mean "max_age"?
			warning: pgdog.toml:12: otel.endpoint: this is not implemented yet and is ignored`},
		{"replicas beside a primary", "[[databases]]\nname = 'app'\nhost = 'r'\nrole = 'replica'\n" + oneDatabase, oneUser, ""},
		{"replicas only", "[[databases]]\nname = 'app'\nhost = 'r'\nrole = 'replica'\n[[databases]]\nname = 'app'\nhost = 's'\nrole = 'replica'\n", oneUser, `
			warning: pgdog.toml:1: databases.role: database "app" has replicas only, where no statement can write`},
		{"roles to find out", "[[databases]]\nname = 'app'\nhost = 'a'\nrole = 'auto'\n[[databases]]\nname = 'app'\nhost = 'b'\nrole = 'auto'\n", oneUser, ""},
		{"some roles to find out", "[[databases]]\nname = 'app'\nhost = 'a'\nrole = 'auto'\n[[databases]]\nname = 'app'\nhost = 'b'\nrole = 'replica'\n", oneUser, `
			warning: pgdog.toml:1: databases.role: some hosts of database "app" have role auto and some do not: a primary that is set stays the primary`},
		{"several primaries", oneDatabase + "[[databases]]\nname = 'app'\nhost = 'other'\n", oneUser, `
			warning: pgdog.toml:4: databases: database "app" has several primaries: the first is used, and other gets nothing`},
		{"a host twice", oneDatabase + "[[databases]]\nname = 'app'\nhost = 'db'\nrole = 'replica'\n", oneUser, `
			warning: pgdog.toml:4: databases: host db is there more than once for database "app": the first entry is used`},
		{"databases that cannot be reached", oneDatabase + "[[databases]]\nname = 'admin'\nhost = 'h'\n", oneUser, `
			warning: pgdog.toml:4: databases.name: clients that ask for database "admin" get the console, whose name it is
			warning: pgdog.toml:4: databases.name: no user may use database "admin"`},
		{"users for no database", oneDatabase, oneUser + "[[users]]\nname = 'bob'\npassword = 'x'\n[[users]]\nname = 'eve'\npassword = 'x'\ndatabase = 'apq'\n", `
			warning: users.toml:5: users: user "bob" may use no database: set database, databases or all_databases
			warning: users.toml:11: users.database: user "eve" is for database "apq", which is not in [[databases]]; did you mean "app"?`},
		{"users that are there twice", oneDatabase, oneUser + "[[users]]\nname = 'ann'\nall_databases = true\npassword = 'x'\n", `
			warning: users.toml:5: users: user "ann" is there more than once for database "app": the first entry is used`},
		{"minimum above size", oneDatabase + "pool_size = 2\nmin_pool_size = 3\n", oneUser, `
			warning: pgdog.toml:5: databases.min_pool_size: 3 is above pool_size, which is 2 and holds`},
		{"no password", oneDatabase, "[[users]]\nname = 'ann'\ndatabase = 'app'\n", `
			warning: users.toml:1: users: user "ann" has no password, so nobody can log in as it (auth_type is scram)`},
		{"no password where none is needed", "[general]\nauth_type = 'trust'\n" + oneDatabase, "[[users]]\nname = 'ann'\ndatabase = 'app'\n", ""},
		{"a hash of another kind", "[general]\nauth_type = 'md5'\n" + oneDatabase, "[[users]]\nname = 'ann'\ndatabase = 'app'\nserver_password = 'x'\npassword_hash = '" + scram + "'\n", `
			warning: users.toml:5: users.password_hash: auth_type md5 cannot be checked against this kind of hash, so nobody can log in as "ann"`},
		{"a hash of the other kind", oneDatabase, "[[users]]\nname = 'ann'\ndatabase = 'app'\nserver_password = 'x'\npassword_hash = '" + md5 + "'\n", `
			warning: users.toml:5: users.password_hash: auth_type scram cannot be checked against this kind of hash, so nobody can log in as "ann"`},
		{"a hash that plain can check", "[general]\nauth_type = 'plain'\n" + oneDatabase + "password = 'x'\n", "[[users]]\nname = 'ann'\ndatabase = 'app'\npassword_hash = '" + md5 + "'\n", ""},
		{"a hash, and what it leaves does for servers", oneDatabase, "[[users]]\nname = 'ann'\ndatabase = 'app'\npassword_hash = '" + scram + "'\n", ""},
		{"an identity and no certificates", oneDatabase, "[[users]]\nname = 'ann'\ndatabase = 'app'\nidentity = 'ann'\nserver_password = 'x'\n", `
			warning: users.toml:4: users.identity: without tls_client_ca_certificate nobody is asked for a certificate, so it does not help user "ann"`},
		{"users to be found out", "[general]\nauth_user = 'x'\n" + oneDatabase, "[[users]]\nname = 'ann'\ndatabase = 'app'\n", ""},
		{"passwords that are not passed on", "[general]\npassthrough_auth = 'enabled'\n" + oneDatabase, "[[users]]\nname = 'ann'\ndatabase = 'app'\n", `
			warning: pgdog.toml:2: general.passthrough_auth: passwords are passed on only over TLS, and there is no tls_certificate`},
		{"look-ups in no database", "[general]\nauth_user = 'x'\nauth_dbname = 'y'\n" + oneDatabase, oneUser, `
			pgdog.toml:3: general.auth_dbname: database "y" is not in [[databases]]`},
		{"look-ups by nobody", "[general]\nauth_query = 'SELECT'\n" + oneDatabase, oneUser, `
			pgdog.toml:2: general.auth_user: without it nobody looks up passwords, and auth_query, auth_dbname and auth_password are of no use`},
		{"a hash and nothing for servers", "[general]\nauth_type = 'plain'\n" + oneDatabase, "[[users]]\nname = 'ann'\ndatabase = 'app'\npassword_hash = '" + scram + "'\n", `
			warning: users.toml:4: users.password_hash: the servers of user "ann" have no password, since a hash is none: without server_password Postgres must let them in without`},
		{"an MD5 hash, which does for servers that ask by MD5", "[general]\nauth_type = 'md5'\n" + oneDatabase, "[[users]]\nname = 'ann'\ndatabase = 'app'\npassword_hash = '" + md5 + "'\n", ""},
		{"an MD5 hash and another name for servers", "[general]\nauth_type = 'md5'\n" + oneDatabase, "[[users]]\nname = 'ann'\ndatabase = 'app'\nserver_user = 'bob'\npassword_hash = '" + md5 + "'\n", `
			warning: users.toml:5: users.password_hash: the servers of user "ann" have no password, since a hash is none: without server_password Postgres must let them in without`},
		{"no level", "[general]\nlog_level = 'inof'\n" + oneDatabase, oneUser, `
			warning: pgdog.toml:2: general.log_level: "inof" has none of trace, debug, info, warn, error, off for everything, so info is used; did you mean "info"?`},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, problems := loadText(t, test.config, test.users, nil)
			expect(t, problems, test.want)
		})
	}
}
