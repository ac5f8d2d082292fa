package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/pgebb/pgebb/internal/scram"
)

// try runs a command line with this standard input.
func try(t *testing.T, stdin string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, err strings.Builder
	code = command(args, strings.NewReader(stdin), &out, &err)
	return code, out.String(), err.String()
}

// files writes a configuration and returns the flags that name it.
func files(t *testing.T, config, users string) []string {
	t.Helper()
	dir := t.TempDir()
	c, u := filepath.Join(dir, "c.toml"), filepath.Join(dir, "u.toml")
	for path, text := range map[string]string{c: config, u: users} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return []string{"-c", c, "--users=" + u}
}

const (
	goodConfig = "[[databases]]\nname = 'app'\nhost = 'h'\n"
	goodUsers  = "[[users]]\nname = 'ann'\ndatabase = 'app'\npassword = 'x'\n"
)

func TestWrongCommandLines(t *testing.T) {
	for _, test := range []struct {
		args []string
		want string
	}{
		{[]string{"--confg", "x"}, "pgebb: flag provided but not defined: -confg; pgebb --help says more\n"},
		{[]string{"-c"}, "pgebb: flag needs an argument: -c; pgebb --help says more\n"},
		{[]string{"start"}, "pgebb: \"start\" is none of run, configcheck, hash; pgebb --help says more\n"},
		{[]string{"run", "twice"}, "pgebb: \"twice\" is one argument too many; pgebb --help says more\n"},
	} {
		code, stdout, stderr := try(t, "", test.args...)
		if code != exitUsage || stdout != "" || stderr != test.want {
			t.Errorf("%q gives %d, %q and %q, want %q", test.args, code, stdout, stderr, test.want)
		}
	}
}

func TestHelpAndVersion(t *testing.T) {
	for _, args := range [][]string{{"-h"}, {"--help"}, {"configcheck", "-h"}} {
		if code, stdout, stderr := try(t, "", args...); code != exitOK || stdout != usage || stderr != "" {
			t.Errorf("%q gives %d, %q and %q", args, code, stdout, stderr)
		}
	}
	if code, stdout, _ := try(t, "", "--version"); code != exitOK || !strings.HasPrefix(stdout, "pgebb ") || strings.TrimSpace(stdout) == "pgebb" {
		t.Errorf("--version gives %d and %q", code, stdout)
	}
}

func TestFlagsOnBothSidesOfTheCommand(t *testing.T) {
	line, err := parse([]string{"-c", "a", "-d", "one", "configcheck", "--users", "b", "--database-url=two"})
	if err != nil {
		t.Fatal(err)
	}
	if line.command != "configcheck" || line.src.ConfigPath != "a" || line.src.UsersPath != "b" || !slices.Equal(line.src.DatabaseURLs, []string{"one", "two"}) {
		t.Errorf("the command line is read as %+v", line)
	}
	line, err = parse(nil)
	if err != nil || line.command != "" || line.src.ConfigPath != "pgdog.toml" || line.src.UsersPath != "users.toml" {
		t.Errorf("an empty command line is read as %+v, %v", line, err)
	}
}

func TestConfigcheck(t *testing.T) {
	good := files(t, goodConfig, goodUsers)
	code, stdout, stderr := try(t, "", append(good, "configcheck")...)
	if code != exitOK || stdout != "the configuration is good: databases 1, users 1, pools 1\n" || stderr != "" {
		t.Errorf("a good configuration gives %d, %q and %q", code, stdout, stderr)
	}
	bad := files(t, "[general]\nprot = 1\ndry_run = true\n"+goodConfig, goodUsers+"pasword = 'y'\n")
	code, stdout, stderr = try(t, "", append([]string{"configcheck"}, bad...)...)
	config, users := bad[1], strings.TrimPrefix(bad[2], "--users=")
	want := "error: " + config + ":2: general.prot: unknown key (did you mean \"port\"?)\n" +
		"warning: " + config + ":3: general.dry_run: this is not supported and is ignored\n" +
		"error: " + users + ":5: users.pasword: unknown key (did you mean \"password\"?)\n"
	if code != exitFailed || stdout != want || stderr != "" {
		t.Errorf("a bad configuration gives %d, %q and %q, want %q", code, stdout, stderr, want)
	}
	code, stdout, _ = try(t, "", "-c", "/nowhere/pgdog.toml", "configcheck")
	if code != exitFailed || !strings.Contains(stdout, "error: /nowhere/pgdog.toml: the file does not exist") {
		t.Errorf("a file that is not there gives %d and %q", code, stdout)
	}
	warned := files(t, "[general]\ndry_run = true\n"+goodConfig, goodUsers)
	code, stdout, _ = try(t, "", append(warned, "configcheck")...)
	if code != exitOK || !strings.HasSuffix(stdout, "\nthe configuration can be used, with the warning above: databases 1, users 1, pools 1\n") {
		t.Errorf("a configuration with a warning gives %d and %q", code, stdout)
	}
	code, stdout, _ = try(t, "", append(good, "-d", "nonsense", "configcheck")...)
	if code != exitFailed || !strings.Contains(stdout, "database URL 1") {
		t.Errorf("a bad URL gives %d and %q", code, stdout)
	}
}

func TestRunRefusesABadConfiguration(t *testing.T) {
	bad := files(t, "[general]\nprot = 1\n"+goodConfig, goodUsers)
	for _, args := range [][]string{bad, append(bad, "run")} {
		code, stdout, stderr := try(t, "", args...)
		if code != exitFailed || stdout != "" || !strings.Contains(stderr, ":2: general.prot: unknown key") {
			t.Errorf("%q gives %d, %q and %q", args, code, stdout, stderr)
		}
	}
}

func TestHash(t *testing.T) {
	for stdin, password := range map[string]string{"secret\n": "secret", "secret": "secret", " two words \r\nmore\n": " two words ", "pässwörd\n": "pässwörd"} {
		code, stdout, stderr := try(t, stdin, "hash")
		v, err := scram.Parse(strings.TrimSuffix(stdout, "\n"))
		if code != exitOK || stderr != "" || err != nil {
			t.Errorf("%q gives %d, %q, %q and %v", stdin, code, stdout, stderr, err)
			continue
		}
		if again, err := scram.Derive(password, v.Salt, 4096); err != nil || again.String() != v.String() || len(v.Salt) != 16 {
			t.Errorf("%q gives %s, which is not that of %q with a salt of 16 bytes and 4096 iterations", stdin, v, password)
		}
		if _, other, _ := try(t, stdin, "hash"); other == stdout {
			t.Error("two verifiers have the same salt")
		}
	}
	if code, stdout, stderr := try(t, "\n", "hash"); code != exitUsage || stdout != "" || !strings.Contains(stderr, "there is none") {
		t.Errorf("an empty password gives %d, %q and %q", code, stdout, stderr)
	}
	code, stdout, stderr := try(t, "", "hash", "secret")
	if code != exitUsage || stdout != "" || strings.Contains(stderr, "secret") || !strings.Contains(stderr, "standard input") {
		t.Errorf("a password as argument gives %d, %q and %q", code, stdout, stderr)
	}
}
