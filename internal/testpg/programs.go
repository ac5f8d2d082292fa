package testpg

import (
	"errors"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// BinDir finds the folder with the programs of the newest Postgres server, or of the
// one that is on the PATH.
func BinDir() (string, error) {
	if path, err := exec.LookPath("initdb"); err == nil {
		if path, err = filepath.EvalSymlinks(path); err == nil { // a link to it may stand there alone
			return filepath.Dir(path), nil
		}
	}
	var found []string
	for _, pattern := range []string{"/usr/lib/postgresql/*/bin", "/usr/pgsql-*/bin", "/usr/libexec/postgresql*", "/usr/lib/postgresql*/bin", "/opt/homebrew/opt/postgresql*/bin"} {
		dirs, _ := filepath.Glob(pattern) // the pattern is good
		found = append(found, dirs...)
	}
	if out, err := exec.Command("pg_config", "--bindir").Output(); err == nil {
		found = append(found, strings.TrimSpace(string(out)))
	}
	found = slices.DeleteFunc(found, func(dir string) bool {
		_, err := exec.LookPath(filepath.Join(dir, "initdb"))
		return err != nil
	})
	if len(found) == 0 {
		return "", errors.New("no initdb of a Postgres server is found: run `make test` or scripts/ensure-postgres.sh, which install one")
	}
	return slices.MaxFunc(found, func(a, b string) int { return version(a) - version(b) }), nil
}

// version is the first number in a path, which in all the usual places is Postgres's
// major version.
func version(path string) int {
	digits := strings.FieldsFunc(path, func(r rune) bool { return r < '0' || r > '9' })
	if len(digits) == 0 {
		return 0
	}
	n, err := strconv.Atoi(digits[0])
	if err != nil {
		return 0
	}
	return n
}

// Program is the path of one of Postgres's client programs, such as psql and pgbench.
func Program(name string) (string, error) {
	if bin, err := BinDir(); err == nil {
		if path, err := exec.LookPath(filepath.Join(bin, name)); err == nil {
			return path, nil
		}
	}
	if path, err := exec.LookPath(name); err == nil {
		return path, nil
	}
	return "", errors.New(name + " is not found: run scripts/ensure-postgres.sh, which installs it")
}
