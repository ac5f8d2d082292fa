package config

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// loadText loads two files with this text. Files are told without their folder.
func loadText(t *testing.T, config, users string, env map[string]string, urls ...string) (*Config, Problems) {
	t.Helper()
	dir := t.TempDir()
	src := Source{
		ConfigPath: filepath.Join(dir, "pgdog.toml"), UsersPath: filepath.Join(dir, "users.toml"), DatabaseURLs: urls,
		Env: func(name string) (string, bool) { v, ok := env[name]; return v, ok },
	}
	for path, text := range map[string]string{src.ConfigPath: config, src.UsersPath: users} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	c, problems := Load(src)
	for i := range problems {
		problems[i].File = filepath.Base(problems[i].File)
		if problems[i].File == "." {
			problems[i].File = ""
		}
	}
	return c, problems
}

// mustLoad is loadText for what has no errors.
func mustLoad(t *testing.T, config, users string, env map[string]string, urls ...string) *Config {
	t.Helper()
	c, problems := loadText(t, config, users, env, urls...)
	if err := problems.Err(); err != nil {
		t.Fatal(err)
	}
	return c
}

// told are the problems as lines, with "warning: " before those that are.
func told(problems Problems) []string {
	var lines []string
	for _, p := range problems {
		kind := ""
		if p.Warning {
			kind = "warning: "
		}
		lines = append(lines, kind+p.String())
	}
	return lines
}

// expect compares problems with the lines of want.
func expect(t *testing.T, problems Problems, want string) {
	t.Helper()
	var lines []string
	for _, l := range strings.Split(want, "\n") {
		if l = strings.TrimSpace(l); l != "" {
			lines = append(lines, l)
		}
	}
	if got := told(problems); !slices.Equal(got, lines) {
		t.Errorf("the problems are\n\t%s\nwant\n\t%s", strings.Join(got, "\n\t"), strings.Join(lines, "\n\t"))
	}
}

// A minimal pair of files that has nothing wrong with it.
const (
	oneDatabase = "[[databases]]\nname = 'app'\nhost = 'db'\n"
	oneUser     = "[[users]]\nname = 'ann'\ndatabase = 'app'\npassword = 'secret'\n"
)

func TestExamplesAreGood(t *testing.T) {
	text := func(name string) string { // a copy, since everybody can read what is in a repository
		b, err := os.ReadFile(filepath.Join("../docs/example", name))
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	c, problems := loadText(t, text("pgdog.toml"), text("users.toml"), nil)
	expect(t, problems, "")
	if n := len(c.Pools()); n != 3 {
		t.Errorf("the examples make %d pools, want 3", n)
	}
	if p, _ := c.FindPool("analyst", "reports"); p.Mode != Session || p.ServerUser != "reader" || !p.ReadOnly {
		t.Errorf("the pool of analyst at reports is %+v", p)
	}
}

func TestMissingFilesAreWarnings(t *testing.T) {
	dir := t.TempDir()
	c, problems := Load(Source{ConfigPath: dir + "/a", UsersPath: dir + "/b"})
	expect(t, problems, `
		warning: `+dir+`/a: the file does not exist, so defaults are used
		warning: `+dir+`/b: the file does not exist, so defaults are used
		warning: there is no database, so there is nothing that clients can use but the console`)
	if c.General.Port != 6432 || c.General.DefaultPoolSize != 10 {
		t.Errorf("without files the defaults are %+v", c.General)
	}
}

func TestUnreadableFileIsAnError(t *testing.T) {
	dir := t.TempDir()
	_, problems := Load(Source{ConfigPath: dir, UsersPath: dir + "/none"})
	if problems.Err() == nil {
		t.Error("a folder was taken for a file")
	}
}
