package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/pgebb/pgebb/config"
)

// configcheck prints every problem of a configuration.
//
// A file that is not there is no problem for who only sets the environment, nor for PgDog.
// But who names one means one.
func configcheck(line commandLine, stdout io.Writer) int {
	missing := slices.DeleteFunc(line.named, func(path string) bool {
		_, err := os.Stat(path)
		return !errors.Is(err, fs.ErrNotExist)
	})
	for _, path := range missing {
		whole, _ := filepath.Abs(path) // fails only where there is no working directory
		fmt.Fprintf(stdout, "error: %s: the file does not exist (%s)\n", path, whole)
	}
	if len(missing) > 0 {
		return exitFailed
	}
	cfg, problems := config.Load(line.src)
	for _, p := range problems {
		kind := "error"
		if p.Warning {
			kind = "warning"
		}
		fmt.Fprintf(stdout, "%s: %s\n", kind, p)
	}
	if problems.Err() != nil {
		return exitFailed
	}
	result := "is good"
	switch n := len(problems); {
	case n == 1:
		result = "can be used, with the warning above"
	case n > 1:
		result = fmt.Sprintf("can be used, with the %d warnings above", n)
	}
	fmt.Fprintf(stdout, "the configuration %s: databases %d, users %d, pools %d\n", result, len(cfg.Databases), len(cfg.Users), len(cfg.Pools()))
	return exitOK
}
