// Command withpg starts a throwaway Postgres, runs a command with the environment
// variable PGEBB_TEST_POSTGRES naming it, and stops it again. Its exit code is the
// command's.
package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"

	"github.com/pgebb/pgebb/internal/testpg"
)

func main() { os.Exit(run(os.Args[1:])) }

func run(args []string) int {
	if len(args) == 0 {
		fmt.Fprintln(os.Stderr, "usage: withpg command [argument]...")
		return 2
	}
	pg, err := testpg.Start()
	if err != nil {
		fmt.Fprintln(os.Stderr, "withpg:", err)
		return 1
	}
	defer pg.Stop()
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.Env = append(os.Environ(), pg.Env())
	err = cmd.Run()
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit):
		return exit.ExitCode()
	case err != nil:
		fmt.Fprintln(os.Stderr, "withpg:", err)
		return 1
	}
	return 0
}
