package config

import "testing"

func TestLearnedUsersHavePools(t *testing.T) {
	c := mustLoad(t, oneDatabase+"[[databases]]\nname = 'other'\nhost = 'h'\n", `[[users]]
name = 'ann'
all_databases = true
pool_size = 7
[[users]]
name = 'bob'
database = 'app'
password = 'x'
`, nil)
	more := c.WithLearned([]Learned{
		{User: "ann", Database: "app", Password: "secret"}, {User: "bob", Database: "app", Password: "new"},
		{User: "cid", Database: "app"}, {User: "cid", Database: "nowhere"},
	})
	for _, want := range []struct {
		user, database string
		passwords      int
		size           int
		password       string
	}{
		{"ann", "app", 1, 7, "secret"}, {"ann", "other", 0, 7, ""}, {"bob", "app", 1, 10, "new"}, {"cid", "app", 0, 10, ""},
	} {
		p, ok := more.FindPool(want.user, want.database)
		if !ok || p.Size != want.size || len(p.ServerPasswords) != want.passwords || want.passwords > 0 && p.ServerPasswords[0] != want.password {
			t.Errorf("the pool of %s at %s is %+v", want.user, want.database, p)
		}
	}
	if n := len(more.Pools()); n != 4 {
		t.Errorf("there are %d pools", n)
	}
	if p, _ := c.FindPool("ann", "app"); len(p.ServerPasswords) != 0 || len(c.Pools()) != 3 {
		t.Errorf("the configuration itself has changed: %+v", p)
	}
	if c.WithLearned(nil) != c {
		t.Error("with nobody it is another")
	}
}
