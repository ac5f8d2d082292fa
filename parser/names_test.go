package parser

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/pgebb/pgebb/internal/verdict"
)

func TestCustomParametersAreFoundByName(t *testing.T) {
	for sql, want := range map[string]string{
		"SET app.x = 1": "app.x",
		"set session App.X to 1; SET LOCAL app.y = 2":                                      "app.x app.y",
		"SET session.x = 1; SET local . y = 2; SET SESSION local.z = 3":                    "session.x local.y local.z",
		`SET "App"."X y" = 1; SET "a.b" = 2`:                                               "app.x y a.b",
		"RESET a.b; SET a.b.c TO DEFAULT":                                                  "a.b a.b.c",
		"SET /* a.b */ c.d -- e\n = 1":                                                     "c.d",
		"SELECT set_config('a.b', 'c.d', false), pg_catalog.set_config ( 'e.f', '', true)": "a.b e.f",
		"SELECT set_config($1, 'x.y', false)":                                              "",
		"SELECT set_config('work_mem', '1', false); SET lock_timeout = 5":                  "",
		"DO $$BEGIN PERFORM set_config('a.b', 'c', false); SET d.e = 'f'; END$$":           "a.b d.e",
		"DO 'BEGIN SET a.b = ''c''; EXECUTE ''SET d.e = 1''; END'":                         "a.b d.e",
		"DO $x$BEGIN EXECUTE $y$SET a.b = 1$y$; END$x$":                                    "a.b",
		"SET a.":     "",
		"SET a":      "",
		"SET":        "",
		"set_config": "", "set_config(": "", "set_config('a.b'": "a.b",
		"SET TIME ZONE 'Europe/Berlin.x'": "",
		"SET a.set = 1; SET set.a = 2":    "a.set set.a",
		"SET a.b SET c.d":                 "a.b c.d",
		"SELECT '', '$', $$, $a$":         "",
	} {
		if got := namesOf(customNames([]byte(sql))); got != want {
			t.Errorf("%s: %q, want %q", sql, got, want)
		}
	}
}

func namesOf(settings []verdict.Setting) string {
	var names []string
	for _, s := range settings {
		names = append(names, s.Name)
	}
	return strings.Join(names, " ")
}

func TestNamesOfATextTakeABoundedAmount(t *testing.T) {
	var b strings.Builder
	for i := range 20_000 {
		fmt.Fprintf(&b, "SET app.x%d = 1; ", i)
	}
	n := 0
	for _, s := range customNames([]byte(b.String())) {
		n += len(s.Name)
	}
	if n > maxNames || n < maxNames/2 {
		t.Errorf("names of %d bytes are found, the limit is %d", n, maxNames)
	}
}

// TestATextThatIsNotParsedNamesItsCustomParameters, whatever it is that it is not parsed for.
func TestATextThatIsNotParsedNamesItsCustomParameters(t *testing.T) {
	many := strings.Repeat("SET app.x = 1; ", inlineTokens)
	for what, sql := range map[string]string{
		"it takes long":           many + "SET app.last = 1",
		"it is no SQL":            "SET app.first = 1 FROBNICATE; SET app.last = 1",
		"it is cut off":           "SET app.first = 1; SET app.last = 'x",
		"it is too long":          strings.Repeat("SET app.x = 1; ", maxTokens) + "SET app.last = 1",
		"it is the body of a DO":  "DO $$BEGIN SET app.last = 1; END$$",
		"and with something else": "DO $$BEGIN SET app.last = 1; END$$; SET work_mem = '1MB'",
	} {
		j := NewJudge(Options{})
		for range 3 { // the memo is asked later
			v := j.Judge([]byte(sql), verdict.State)
			if !v.Has(verdict.Unnamed) || !slices.ContainsFunc(v.Settings, func(s verdict.Setting) bool { return s.Name == "app.last" }) {
				t.Errorf("%s: flags %b, names %s", what, v.Flags, namesOf(v.Settings[max(0, len(v.Settings)-3):]))
			}
			if what == "it takes long" {
				break // it is parsed meanwhile
			}
		}
		j.Wait()
	}
}

func FuzzCustomNames(f *testing.F) {
	for _, sql := range []string{"SET a.b = 1", "DO $$SET a.b$$", "set_config('a.b'", `SET "a"".b".c`, "RESET local.x", "$", "$a", "E'", "U&'"} {
		f.Add(sql)
	}
	f.Fuzz(func(t *testing.T, sql string) {
		for _, s := range customNames([]byte(sql)) {
			if !strings.Contains(s.Name, ".") || s.Name != strings.ToLower(s.Name) {
				t.Errorf("%q is found", s.Name)
			}
		}
	})
}
