package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/pgebb/pgebb/internal/testpg"
)

// blocks are the code blocks of a language in a document.
func blocks(t *testing.T, document, language string) (all []string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(testpg.Root(), document))
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range regexp.MustCompile("(?s)```"+language+"\n(.*?)```").FindAllStringSubmatch(string(text), -1) {
		all = append(all, m[1])
	}
	if len(all) == 0 {
		t.Fatalf("%s has no block of %s", document, language)
	}
	return all
}

// TestGettingStarted does what docs/getting-started.md says, with the configuration of the
// README. Only hosts and ports are others.
func TestGettingStarted(t *testing.T) {
	pg, err := testpg.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pg.Stop)
	for _, line := range strings.Split(strings.TrimSpace(blocks(t, "docs/getting-started.md", "sql")[0]), "\n") {
		pg.Exec(t, "postgres", line)
	}
	files := blocks(t, "README.md", "toml")
	general, tables, found := strings.Cut(files[0], "\n\n")
	if !found || !strings.HasPrefix(general, "[general]\n") {
		t.Fatalf("pgdog.toml of the README does not begin with [general]: %s", files[0])
	}
	general = regexp.MustCompile(`(?m)^\[general\]$|^(host|port) = .*$`).ReplaceAllString(general, "")
	tables = regexp.MustCompile(`(?m)^host = .*$`).ReplaceAllString(tables, fmt.Sprintf("host = %q", pg.Host))
	tables = regexp.MustCompile(`(?m)^port = .*$`).ReplaceAllString(tables, fmt.Sprintf("port = %d", pg.Port))
	p := testpg.Pgebb(t, testpg.Options{General: general, Config: tables, Users: files[1]})

	asked := 0
	for _, block := range blocks(t, "docs/getting-started.md", "sh") {
		for _, line := range strings.Split(block, "\n") {
			if !strings.HasPrefix(line, "psql ") {
				continue
			}
			password, want := "the console's password", "app"
			if strings.Contains(line, "-U app") {
				password, want = "the user's password", "app          | app"
			}
			if strings.Contains(line, "SHOW MEMORY") {
				want = "unaccounted"
			}
			cmd := exec.Command("sh", "-c", program(t, "psql")+" -X "+strings.Replace(strings.TrimPrefix(line, "psql "), "6432", fmt.Sprint(p.Port), 1))
			cmd.Env = append(os.Environ(), "PGPASSWORD="+password)
			if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), want) {
				t.Errorf("%s: %v\n%s\nwant in it %q", line, err, out, want)
			}
			asked++
		}
	}
	if asked < 4 {
		t.Errorf("docs/getting-started.md has %d commands for psql", asked)
	}
}
