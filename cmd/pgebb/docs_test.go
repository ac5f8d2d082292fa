package main

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/pgebb/pgebb/config"
)

// read returns a file of the module's root.
func read(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("..", "..", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// submatches returns the first group of every match.
func submatches(expr, text string) []string {
	var all []string
	for _, m := range regexp.MustCompile(expr).FindAllStringSubmatch(text, -1) {
		all = append(all, m[1])
	}
	return all
}

func targets(t *testing.T) []string {
	t.Helper()
	all := submatches(`(?m)^([A-Za-z0-9_./-]+):([^=].*)?$`, read(t, "Makefile"))
	return slices.DeleteFunc(all, func(s string) bool { return s == ".PHONY" })
}

func TestMakeHelpListsEveryTarget(t *testing.T) {
	cmd := exec.Command("make", "--no-print-directory", "-C", filepath.Join("..", ".."), "help")
	cmd.Env = slices.DeleteFunc(os.Environ(), func(s string) bool { return strings.HasPrefix(s, "MAKE") })
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	listed := submatches(`(?m)^  ([a-z-]+) +\S`, string(out))
	want := targets(t)
	if !slices.Equal(listed, want) {
		t.Errorf("make help lists %q, the Makefile has %q", listed, want)
	}
	phony := submatches(`(?m)^\.PHONY: (\S+)$`, read(t, "Makefile"))
	if !slices.Equal(phony, want) {
		t.Errorf("phony are %q, the Makefile has %q", phony, want)
	}
}

// TestDocumentedMakeCommandsExist looks at `make x` and at lines of code that begin with
// it.
func TestDocumentedMakeCommandsExist(t *testing.T) {
	for _, name := range []string{"README.md", "CONTRIBUTING.md", ".ci/run"} {
		text := read(t, name)
		commands := slices.Concat(submatches("`make ([^ `]+)", text), submatches("(?m)^make (\\S+)", text))
		if len(commands) == 0 {
			t.Errorf("%s has no make command", name)
		}
		for _, target := range commands {
			if !slices.Contains(targets(t), target) {
				t.Errorf("%s speaks of make %s, which is no target", name, target)
			}
		}
	}
}

func TestTheTwoCommandsAreInTheReadme(t *testing.T) {
	for _, command := range []string{"make demo", "make test"} {
		if !strings.Contains(read(t, "README.md"), "\n"+command) {
			t.Errorf("README.md does not have %s", command)
		}
	}
	if run := read(t, ".ci/run"); !strings.HasSuffix(run, "\nmake test\n") {
		t.Errorf(".ci/run does not end with make test:\n%s", run)
	}
}

// readmeConfiguration writes the configuration of the README to files.
func readmeConfiguration(t *testing.T) (files []string) {
	t.Helper()
	blocks := submatches("(?s)```toml\n(.*?)```", read(t, "README.md"))
	if len(blocks) != 2 {
		t.Fatalf("README.md has %d blocks of TOML, want pgdog.toml and users.toml", len(blocks))
	}
	dir := t.TempDir()
	for i, name := range []string{"pgdog.toml", "users.toml"} {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(blocks[i]), 0o600); err != nil {
			t.Fatal(err)
		}
		files = append(files, path)
	}
	return files
}

func TestTheConfigurationOfTheReadmeIsGood(t *testing.T) {
	files := readmeConfiguration(t)
	cfg, problems := config.Load(config.Source{
		ConfigPath: files[0], UsersPath: files[1], Env: func(string) (string, bool) { return "", false },
	})
	for _, p := range problems {
		t.Error(p)
	}
	if _, ok := cfg.FindPool("app", "app"); !ok {
		t.Error("it has no pool for user app at database app")
	}
}

// TestTheCommandsOfTheReadmeAreUnderstood runs them with the configuration of the
// README, all but the one that would not end.
func TestTheCommandsOfTheReadmeAreUnderstood(t *testing.T) {
	commands := submatches(`(?m)^bin/pgebb ([^#\n]*)`, read(t, "README.md"))
	if len(commands) < 4 {
		t.Fatalf("README.md has %d commands", len(commands))
	}
	t.Chdir(filepath.Dir(readmeConfiguration(t)[0]))
	for _, line := range commands {
		args := strings.Fields(line)
		if slices.Contains(args, "run") {
			args[slices.Index(args, "run")] = "configcheck"
		}
		var said strings.Builder
		if code := command(args, strings.NewReader("password\n"), io.Discard, &said); code != exitOK {
			t.Errorf("pgebb %s: exit code %d: %s", line, code, said.String())
		}
	}
}

func TestDocumentsLinkToWhatIsThere(t *testing.T) {
	for _, name := range []string{"README.md", "CONTRIBUTING.md", "CHANGELOG.md", "docs/architecture.md", "docs/configuration.md", "docs/getting-started.md", "docs/memory.md", "docs/operations.md", "docs/moving-from-pgdog.md", "docs/moving-from-pgbouncer.md"} {
		for _, link := range submatches(`\]\(([^)#:]+)\)`, read(t, name)) {
			if _, err := os.Stat(filepath.Join("..", "..", filepath.Dir(name), link)); err != nil {
				t.Errorf("%s has a dead link: %v", name, err)
			}
		}
	}
}

func TestThePageOnPgBouncerNamesKeysThatThereAre(t *testing.T) {
	page := read(t, "docs/moving-from-pgbouncer.md")
	known := map[string]bool{"full": true}
	for _, table := range config.Reference() {
		known["["+table.Name+"]"], known["[["+table.Name+"]]"] = true, true
		for _, k := range table.Keys {
			known[k.Name] = true
		}
	}
	rows := submatches("(?m)^\\| [a-z_`, ]+ \\| ([^|]+) \\|", page)
	if len(rows) < 25 {
		t.Fatalf("the page has only %d settings", len(rows))
	}
	for _, row := range rows {
		for _, name := range submatches("`([^`]+)`", row) {
			if !known[name] {
				t.Errorf("%s is no key", name)
			}
		}
	}
}

func TestTheExamplesOfThePageOnPgBouncerAreGood(t *testing.T) {
	blocks := submatches("(?s)```toml\n(.*?)```", read(t, "docs/moving-from-pgbouncer.md"))
	if len(blocks) != 2 {
		t.Fatalf("the page has %d blocks of toml", len(blocks))
	}
	var files []string
	for i, name := range []string{"pgdog.toml", "users.toml"} {
		files = append(files, filepath.Join(t.TempDir(), name))
		if err := os.WriteFile(files[i], []byte(blocks[i]), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cfg, problems := config.Load(config.Source{
		ConfigPath: files[0], UsersPath: files[1], Env: func(string) (string, bool) { return "", false },
	})
	for _, p := range problems {
		t.Error(p)
	}
	if _, ok := cfg.FindPool("app", "app"); !ok {
		t.Error("there is no pool for user app at database app")
	}
}
