package config

import (
	"slices"
	"strings"
	"testing"
)

func TestDiff(t *testing.T) {
	const config = "[general]\nport = 6432\nworkers = 2\n[[databases]]\nname = 'app'\nhost = 'db'\n[[databases]]\nname = 'other'\nhost = 'db'\n"
	const users = "[[users]]\nname = 'ann'\ndatabase = 'app'\npassword = 'x'\n"
	for _, test := range []struct {
		name                     string
		config, users            string // the new files
		added, gone, kept, fresh []string
		restart                  []string
	}{
		{name: "nothing", config: config, users: users},
		{name: "a user more", config: config, users: users + "[[users]]\nname = 'bob'\ndatabase = 'other'\npassword = 'x'\n", added: []string{"bob/other"}},
		{name: "another database", config: config, users: strings.Replace(users, "app", "other", 1), added: []string{"ann/other"}, gone: []string{"ann/app"}},
		{name: "another size", config: config, users: users + "pool_size = 3\n", kept: []string{"ann/app"}},
		{name: "another mode for all", config: "[general]\npooler_mode = 'session'\n" + strings.TrimPrefix(config, "[general]\n"), users: users, kept: []string{"ann/app"}},
		{name: "another host", config: strings.ReplaceAll(config, "'db'", "'db2'"), users: users, fresh: []string{"ann/app"}},
		{name: "another port", config: strings.Replace(config, "'db'\n", "'db'\nport = 1\n", 1), users: users, fresh: []string{"ann/app"}},
		{name: "another password", config: config, users: strings.Replace(users, "'x'", "'y'", 1), fresh: []string{"ann/app"}},
		{name: "another place to get passwords from", config: config, users: users + "server_auth = 'rds_iam'\n", fresh: []string{"ann/app"}},
		{name: "another user in Postgres", config: config, users: users + "server_user = 'u'\n", fresh: []string{"ann/app"}},
		{name: "another database in Postgres", config: strings.Replace(config, "'db'\n", "'db'\ndatabase_name = 'd'\n", 1), users: users, fresh: []string{"ann/app"}},
		{name: "another setting of sessions", config: config, users: users + "statement_timeout = 1\n", fresh: []string{"ann/app"}},
		{name: "keys that need a restart", users: users, config: strings.NewReplacer("6432", "6433", "workers = 2", "workers = 3\nunix_socket_dir = '/tmp'\nhost = 'h'").Replace(config) + "[tcp]\nkeepalive = false\n[memory]\ntrim_interval = 1\n",
			restart: []string{"general.host", "general.port", "general.workers", "general.unix_socket_dir", "tcp.keepalive", "memory.trim_interval"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := Diff(mustLoad(t, config, users, nil), mustLoad(t, test.config, test.users, nil))
			var kept, fresh []string
			for _, p := range c.Changed {
				if p.KeepConnections {
					kept = append(kept, p.New.User+"/"+p.New.Database)
				} else {
					fresh = append(fresh, p.New.User+"/"+p.New.Database)
				}
				if p.Old.User != p.New.User || p.Old.Database != p.New.Database {
					t.Errorf("%+v are not the same pool", p)
				}
			}
			for what, pair := range map[string][2][]string{
				"new": {poolNames(c.New), test.added}, "gone": {poolNames(c.Gone), test.gone}, "changed": {kept, test.kept},
				"changed with new connections": {fresh, test.fresh}, "needing a restart": {c.Restart, test.restart},
			} {
				if !slices.Equal(pair[0], pair[1]) {
					t.Errorf("%s: %v, want %v", what, pair[0], pair[1])
				}
			}
		})
	}
}

func poolNames(pools []Pool) []string {
	var names []string
	for _, p := range pools {
		names = append(names, p.User+"/"+p.Database)
	}
	return names
}
