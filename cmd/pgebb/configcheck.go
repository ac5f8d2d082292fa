package main

import (
	"fmt"
	"io"

	"github.com/pgebb/pgebb/config"
)

// configcheck prints every problem of a configuration.
func configcheck(src config.Source, stdout io.Writer) int {
	cfg, problems := config.Load(src)
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
	fmt.Fprintf(stdout, "the configuration is good: databases %d, users %d, pools %d\n", len(cfg.Databases), len(cfg.Users), len(cfg.Pools()))
	return exitOK
}
