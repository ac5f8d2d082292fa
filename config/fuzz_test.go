package config

import (
	"strings"
	"testing"
)

// FuzzLoad holds that no files and no URL do harm, that what has no errors makes
// pools that can be used, and that each problem is told with a place that exists.
func FuzzLoad(f *testing.F) {
	f.Add("[general]\nport = 1\n"+oneDatabase, oneUser, "", "")
	f.Add("[general]\nprot = 1\n"+oneDatabase+"pool_size = 0\n", oneUser, "PGDOG_WORKERS", "x")
	f.Add(precedence, precedenceUsers, "PGDOG_POOLER_MODE", "session")
	f.Add("", "", "PGDOG_DATABASE_URL_1", "postgres://u:p@h:1/d?pool_size=3&shard=1")
	f.Add("general = 1\ndatabases = [{name = 'a', host = 'b'}]\n[[users]]\n", "[users]\nname = 'a'\n[[databases]]\n", "", "")
	f.Fuzz(func(t *testing.T, config, users, name, value string) {
		d := &decoder{env: func(s string) (string, bool) { return value, s == name }}
		main, other := d.parse("a", config), d.parse("b", users)
		c := d.config(main, other, nil)
		problems := d.result()
		lines := map[string]int{"a": strings.Count(config, "\n") + 1, "b": strings.Count(users, "\n") + 1}
		for _, p := range problems {
			last, isFile := lines[p.File]
			if p.Message == "" || isFile && p.Line > last || !isFile && p.Line != 0 {
				t.Errorf("the problem %+v has no place", p)
			}
			if isFile && p.Line == 0 && p.Key != "" {
				t.Errorf("the problem %q has no line", p)
			}
		}
		if problems.Err() != nil {
			return
		}
		c.Rows()
		for _, p := range c.Pools() {
			if p.Host == "" || p.Port < 1 || p.Port > 65535 || p.Size < 1 || p.MinSize < 0 || p.MinSize > p.Size || p.ConnectAttempts < 1 {
				t.Errorf("a pool is %+v", p)
			}
			if found, ok := c.FindPool(p.User, p.Database); !ok || found.Host != p.Host || !c.HasDatabase(p.Database) {
				t.Errorf("the pool of %q at %q is not found", p.User, p.Database)
			}
			if _, ok := c.Login(p.User, p.Database); !ok {
				t.Errorf("%q cannot log in", p.User)
			}
		}
		if change := Diff(c, c); change.New != nil || change.Gone != nil || change.Changed != nil || change.Restart != nil {
			t.Errorf("a configuration differs from itself by %+v", change)
		}
	})
}
