package config

import (
	"bufio"
	"os"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// fact is a line of testdata/keys.txt, which was not made from the tags.
type fact struct{ table, key, def, env string }

func facts(t *testing.T) []fact {
	t.Helper()
	f, err := os.Open("testdata/keys.txt")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var out []fact
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		words := strings.Fields(lines.Text())
		if len(words) == 0 || words[0] == "#" {
			continue
		}
		if len(words) != 4 {
			t.Fatalf("testdata/keys.txt: %q", lines.Text())
		}
		out = append(out, fact{words[0], words[1], words[2], strings.TrimPrefix(words[3], "-")})
	}
	return out
}

func TestEveryKeyIsAsTheFactsSay(t *testing.T) {
	want := map[string]fact{}
	for _, f := range facts(t) {
		want[f.table+"."+f.key] = f
	}
	for _, table := range Reference() {
		for _, k := range table.Keys {
			path := table.Name + "." + k.Name
			f, ok := want[path]
			if !ok {
				t.Errorf("%s is a key, and testdata/keys.txt does not have it", path)
				continue
			}
			delete(want, path)
			if k.Default != f.def {
				t.Errorf("the default of %s is %s, want %s", path, k.Default, f.def)
			}
			if k.Env != f.env {
				t.Errorf("the variable of %s is %q, want %q", path, k.Env, f.env)
			}
		}
	}
	for path := range want {
		t.Errorf("%s is not known", path)
	}
}

func TestTagsAreComplete(t *testing.T) {
	for _, table := range tables {
		for i := range table.typ.NumField() {
			f := table.typ.Field(i)
			k := f.Tag
			path := table.name + "." + k.Get("toml")
			if !f.IsExported() || k.Get("toml") == "" || k.Get("doc") == "" {
				t.Errorf("%s of %s lacks a name or a meaning", f.Name, table.name)
			}
			if !slices.Contains([]string{implemented, ignored, refused}, k.Get("status")) {
				t.Errorf("the status of %s is %q", path, k.Get("status"))
			}
			if strings.HasSuffix(f.Type.String(), "time.Duration") != (k.Get("unit") == "ms") {
				t.Errorf("%s: only a time is in ms, and each is", path)
			}
			for _, name := range []string{"min", "max"} {
				if s, ok := k.Lookup(name); ok {
					if _, err := strconv.ParseFloat(s, 64); err != nil {
						t.Errorf("%s: %s: %v", path, name, err)
					}
				}
			}
			for _, name := range []string{"optional", "planned", "own", "restart", "required", "secret"} {
				if s, ok := k.Lookup(name); ok && s != "yes" {
					t.Errorf("%s: %s is %q", path, name, s)
				}
			}
		}
	}
}

// TestDefaults loads files that set nothing and looks at what that gives.
func TestDefaults(t *testing.T) {
	c := mustLoad(t, "[general]\n"+oneDatabase, oneUser, nil)
	loaded := map[string]reflect.Value{
		"general": reflect.ValueOf(c.General), "tcp": reflect.ValueOf(c.TCP), "memory": reflect.ValueOf(c.Memory),
		"databases": reflect.ValueOf(c.Databases[0]), "users": reflect.ValueOf(c.Users[0]),
	}
	n := 0
	for _, f := range facts(t) {
		table, ok := loaded[f.table]
		if !ok || f.def == "required" || f.table == "users" && (f.key == "database" || f.key == "password") {
			continue
		}
		k, _ := find(keysOf(table.Type()), f.key)
		v := table.Field(k.index)
		n++
		switch {
		case f.def == "none" && (v.IsZero() || v.Type() == durationType && v.Int() == int64(Off)):
		case f.def == "off" && v.Int() == int64(Off):
		case f.def == show(v):
		default:
			t.Errorf("%s.%s is %s, want %s", f.table, f.key, show(v), f.def)
		}
	}
	if n < 160 {
		t.Errorf("only %d defaults were compared", n)
	}
}

// samples are two values for a key that differ.
func samples(k key, t reflect.Type) (one, other string) {
	if choices := k.choices(t); choices != nil {
		i := slices.Index(choices, k.def)
		return choices[(i+1)%len(choices)], choices[i]
	}
	switch {
	case t == durationType, t.Kind() == reflect.Int:
		return "77", "78"
	case t.Kind() == reflect.Float64:
		return "0.5", "0.25"
	case t.Kind() == reflect.Bool:
		return strconv.FormatBool(k.def != "true"), strconv.FormatBool(k.def == "true")
	}
	return "debug", "error"
}

func TestEnvironmentAndFile(t *testing.T) {
	general := reflect.TypeFor[General]()
	for _, k := range keysOf(general) {
		if k.variable() == "" {
			continue
		}
		ft := general.Field(k.index).Type
		inEnv, inFile := samples(k, ft)
		env := map[string]string{k.variable(): inEnv}
		value := func(file string) string {
			c, _ := loadText(t, file, "", env) // whether it is refused is the business of other tests
			return show(reflect.ValueOf(c.General).Field(k.index))
		}
		if got := value("[general]\n"); got != inEnv {
			t.Errorf("%s=%s gives %s %s", k.variable(), inEnv, k.name, got)
		}
		toml := inFile
		if ft.Kind() == reflect.String || k.choices(ft) != nil {
			toml = strconv.Quote(inFile)
		}
		if got := value("[general]\n" + k.name + " = " + toml + "\n"); got != inFile {
			t.Errorf("%s is %s, want %s as the file says and not as %s does", k.name, got, inFile, k.variable())
		}
	}
}

func TestEnvironmentDetails(t *testing.T) {
	env := map[string]string{
		"PGDOG_PORT": "", "PGDOG_CONNECTION_RECOVERY": "rollbackonly", "PGDOG_LOAD_BALANCING_STRATEGY": "RoundRobin",
		"PGDOG_POOLER_MODE": "Statement", "PGDOG_LOG_CONNECTIONS": "off", "PGDOG_ADMIN_PASSWORD": "p", "PGDOG_NAME": "x", "PGDOG_USER": "x",
	}
	c := mustLoad(t, "", "", env)
	if c.General.Port != 6432 {
		t.Error("an empty variable counts")
	}
	if c.General.ConnectionRecovery != RollbackOnly || c.General.LoadBalancingStrategy != "round_robin" || c.General.PoolerMode != Statement || c.General.LogConnections {
		t.Errorf("words of the environment are read as %+v", c.General)
	}
	if !reflect.DeepEqual(c.Admin, Admin{Name: "admin", User: "admin", Password: "p"}) {
		t.Errorf("the console is %+v", c.Admin)
	}
	_, problems := loadText(t, oneDatabase, oneUser, map[string]string{
		"PGDOG_WORKERS": "many", "PGDOG_AUTH_TYPE": "scam", "PGDOG_TLS_CERTIFICATE": "/a", "PGDOG_MIRRORING_1": "x",
	})
	expect(t, problems, `
		environment: PGDOG_WORKERS: the value must be a whole number that is not negative, not "many"
		environment: PGDOG_AUTH_TYPE: "scam" is none of scram, md5, trust, plain (did you mean "scram"?)
		environment: PGDOG_MIRRORING_1: pgebb does not have this (copying of traffic to another database), and to ignore it would mislead: remove it
		environment: general.tls_certificate: this needs tls_private_key`)
}

func TestAdmin(t *testing.T) {
	const admin = "[admin]\nuser = 'a'\npassword = 'in pgdog.toml'\n"
	c := mustLoad(t, admin, "[admin]\nname = 'console'\npassword = 'in users.toml'\n", map[string]string{"PGDOG_ADMIN_PASSWORD": "p"})
	if !reflect.DeepEqual(c.Admin, Admin{Name: "console", User: "admin", Password: "in users.toml"}) {
		t.Errorf("with two tables the console is %+v", c.Admin)
	}
	if c = mustLoad(t, admin, "", nil); !reflect.DeepEqual(c.Admin, Admin{Name: "admin", User: "a", Password: "in pgdog.toml"}) {
		t.Errorf("with one table the console is %+v", c.Admin)
	}
	first, second := mustLoad(t, "", "", nil).Admin.Password, mustLoad(t, "", "", nil).Admin.Password
	if len(first) < 20 || first != second {
		t.Errorf("random passwords of two loads are %q and %q, want a long one that stays", first, second)
	}
}
