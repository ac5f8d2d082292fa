// Command pgebb is a connection pooler for PostgreSQL.
//
//	pgebb [-c pgdog.toml] [-u users.toml] [-d URL]... [run]
//	pgebb [-c pgdog.toml] [-u users.toml] [-d URL]... configcheck
//	pgebb hash < password
//	pgebb --version
//
// Exit codes: 0 for success, also of a shutdown that was asked for; 1 if the
// configuration is refused or the program cannot go on; 2 for a wrong command line.
//
// Signals: SIGINT shuts down gracefully, SIGTERM at once, SIGHUP reloads.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"

	"github.com/pgebb/pgebb/config"
)

const (
	exitOK     = 0
	exitFailed = 1
	exitUsage  = 2
)

const usage = `pgebb is a connection pooler for PostgreSQL.

Usage: pgebb [flags] [command]

Commands:
  run          accept clients (the default)
  configcheck  print what is wrong with the configuration
  hash         print the SCRAM verifier of the password on standard input

Flags:
  -c, --config FILE        the configuration (default pgdog.toml)
  -u, --users FILE         the users (default users.toml)
  -d, --database-url URL   postgres://user:password@host:port/database, in place of the
                           databases and users of the files; can be repeated
      --version            print the version
  -h, --help               print this

Signals: SIGINT shuts down gracefully, SIGTERM at once, SIGHUP reloads.
Exit codes: 0 success, 1 refused configuration or failure, 2 wrong command line.
`

func main() {
	os.Exit(profiled(func() int { return command(os.Args[1:], os.Stdin, os.Stdout, os.Stderr) }))
}

// commandLine is what the command line says.
type commandLine struct {
	src     config.Source
	named   []string // files of src that are named by a flag
	version bool
	command string
}

// command runs the command line and returns the exit code.
func command(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	line, err := parse(args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		fmt.Fprint(stdout, usage)
		return exitOK
	case err != nil:
		fmt.Fprintf(stderr, "pgebb: %v; pgebb --help says more\n", err)
		return exitUsage
	case line.version:
		fmt.Fprintln(stdout, "pgebb", version())
		return exitOK
	}
	switch line.command {
	case "configcheck":
		return configcheck(line, stdout)
	case "hash":
		return hash(stdin, stdout, stderr)
	default:
		return run(line.src, stdout, stderr)
	}
}

// parse reads the command line. Flags may stand on both sides of the command.
func parse(args []string) (commandLine, error) {
	line := commandLine{src: config.Source{Env: os.LookupEnv}}
	flags := flag.NewFlagSet("pgebb", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	for _, name := range []string{"c", "config"} {
		flags.StringVar(&line.src.ConfigPath, name, "pgdog.toml", "")
	}
	for _, name := range []string{"u", "users"} {
		flags.StringVar(&line.src.UsersPath, name, "users.toml", "")
	}
	for _, name := range []string{"d", "database-url"} {
		flags.Func(name, "", func(url string) error {
			line.src.DatabaseURLs = append(line.src.DatabaseURLs, url)
			return nil
		})
	}
	flags.BoolVar(&line.version, "version", false, "")
	for {
		if err := flags.Parse(args); err != nil {
			return line, err
		}
		line.named = nil
		flags.Visit(func(f *flag.Flag) {
			if slices.Contains([]string{"c", "config", "u", "users"}, f.Name) {
				line.named = append(line.named, f.Value.String())
			}
		})
		if flags.NArg() == 0 {
			return line, nil
		}
		switch word := flags.Arg(0); {
		case line.command == "hash":
			return line, errors.New("hash takes no arguments: it reads the password from standard input, where ps and the shell's history do not see it")
		case line.command != "":
			return line, fmt.Errorf("%q is one argument too many", word)
		case word != "run" && word != "configcheck" && word != "hash":
			return line, fmt.Errorf("%q is none of run, configcheck, hash", word)
		default:
			line.command = word
		}
		args = flags.Args()[1:]
	}
}
