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
	"runtime/debug"
	"strings"

	"github.com/pgebb/pgebb/config"
)

const (
	exitOK     = 0
	exitFailed = 1
	exitUsage  = 2
)

func main() { os.Exit(command(os.Args[1:], os.Stdin, os.Stdout, os.Stderr)) }

// urls is a flag that can be given more than once.
type urls []string

func (u *urls) String() string     { return strings.Join(*u, " ") }
func (u *urls) Set(s string) error { *u = append(*u, s); return nil }

// command runs the command line and returns the exit code.
func command(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	src := config.Source{Env: os.LookupEnv}
	var databaseURLs urls
	var showVersion bool
	flags := flag.NewFlagSet("pgebb", flag.ContinueOnError)
	flags.SetOutput(stderr)
	for _, name := range []string{"c", "config"} {
		flags.StringVar(&src.ConfigPath, name, "pgdog.toml", "`file` with the configuration")
	}
	for _, name := range []string{"u", "users"} {
		flags.StringVar(&src.UsersPath, name, "users.toml", "`file` with the users")
	}
	for _, name := range []string{"d", "database-url"} {
		flags.Var(&databaseURLs, name, "`URL` of a database, instead of the files' databases and users; can be repeated")
	}
	flags.BoolVar(&showVersion, "version", false, "print the version")
	flags.Usage = func() { usage(flags, stderr) }
	if err := flags.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return exitOK
		}
		return exitUsage
	}
	src.DatabaseURLs = databaseURLs
	if showVersion {
		fmt.Fprintln(stdout, "pgebb", version())
		return exitOK
	}
	if flags.NArg() > 1 {
		fmt.Fprintf(stderr, "pgebb: %q is one argument too many\n", flags.Arg(1))
		return exitUsage
	}
	switch name := flags.Arg(0); name {
	case "", "run":
		return run(src, stderr)
	case "configcheck":
		return configcheck(src, stdout)
	case "hash":
		return hash(stdin, stdout, stderr)
	default:
		fmt.Fprintf(stderr, "pgebb: %q is none of run, configcheck, hash\n", name)
		return exitUsage
	}
}

func usage(flags *flag.FlagSet, w io.Writer) {
	fmt.Fprint(w, `pgebb is a connection pooler for PostgreSQL.

Usage: pgebb [flags] [command]

Commands:
  run          accept clients (the default)
  configcheck  print what is wrong with the configuration; exit code 1 if anything is
  hash         print the SCRAM verifier of the password on standard input

Flags:
`)
	flags.PrintDefaults()
}

// version is the module's version, and the commit where that is known.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	v := info.Main.Version
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" && len(s.Value) >= 12 && !strings.Contains(v, s.Value[:12]) {
			v += " " + s.Value[:12]
		}
	}
	return v
}
