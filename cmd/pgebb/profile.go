//go:build profile

package main

import (
	"fmt"
	"os"
	"runtime/pprof"
)

// profiled runs the program and writes what it spends its processor time on to a file in the
// folder that PGEBB_PROFILE names. `make pgo` makes default.pgo of such files, which the
// compiler goes by.
func profiled(program func() int) int {
	f, err := os.CreateTemp(os.Getenv("PGEBB_PROFILE"), "pgebb-*.pprof")
	if err == nil {
		err = pprof.StartCPUProfile(f)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "pgebb: profiling:", err)
		return exitFailed
	}
	defer f.Close()
	defer pprof.StopCPUProfile()
	return program()
}
