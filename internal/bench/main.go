// Command bench compares pgebb with PgBouncer: both before the same throwaway Postgres,
// with the same pool, one after the other in each of several rounds, the order rotating.
// With -server it measures poolers that are running already.
//
// A [scenario] is one thing that is measured, a [system] what it is measured of, and the
// [rig] what they run on.
//
// What is compared is the pooler's own processor time and memory, read from its
// process; on a machine where clients, poolers and Postgres share the cores, throughput
// says as much of the others. Figures are medians over rounds, with their range.
//
// The caveat that bites: it reports and does not judge. Its exit code is 0 whether or
// not a target is reached, and on a busy machine the ranges say how little a ratio means.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/pgebb/pgebb/internal/testpg"
)

// options are the command line's.
type options struct {
	binary   string
	auth     string
	rounds   int
	seconds  int
	clients  int           // that are idle
	wait     time.Duration // of idle clients, before memory is read
	only     []string      // names of scenarios; none for all
	json     string
	syscalls bool

	// transactions, if not 0, is how many each client of pgbench makes, however long that takes.
	transactions int

	servers                  []*system // that run already
	user, password, database string    // for them
}

func main() {
	o, err := parse(os.Args[1:], os.Stderr)
	if errors.Is(err, flag.ErrHelp) {
		return
	}
	if err == nil {
		err = bench(o, os.Stdout, os.Stderr)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// parse reads the command line.
func parse(args []string, usage io.Writer) (options, error) {
	o := options{binary: "bin/pgebb", wait: 10 * time.Second, password: os.Getenv("PGPASSWORD")}
	if binary := os.Getenv(testpg.EnvBinary); binary != "" {
		o.binary = binary
	}
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.SetOutput(usage)
	flags.StringVar(&o.binary, "pgebb", o.binary, "`path` of pgebb, built without the race detector; "+testpg.EnvBinary+" names another")
	flags.StringVar(&o.auth, "auth", "", "how clients log in: trust, md5 or scram; if empty, trust but for logins, where it is md5")
	// Many short rounds: what slows the machine for a while then falls on both systems alike.
	flags.IntVar(&o.rounds, "rounds", 11, fmt.Sprintf("rounds of each scenario, but of idle at most %d; one more is run before, and not counted", freshest))
	flags.IntVar(&o.seconds, "seconds", 2, "length of a measurement with pgbench, and measure for that of the others")
	flags.IntVar(&o.clients, "idle", 4000, "idle clients")
	flags.StringVar(&o.json, "json", "", "write all figures of all rounds to this `file`")
	flags.BoolVar(&o.syscalls, "syscalls", false, "count system calls, too, by perf; adds to the processor time of both")
	flags.StringVar(&o.user, "user", "postgres", "user at -server; PGPASSWORD is the password")
	flags.StringVar(&o.database, "database", "postgres", "database at -server")
	flags.Func("only", "run only these `scenarios`, with commas between: "+strings.Join(names(), ", "), func(s string) error {
		o.only = strings.Split(s, ",")
		return checkNames(o.only)
	})
	flags.Func("server", "measure what listens at this `address` instead of starting anything; a second one is compared with the first", func(s string) error {
		return o.addServer(s)
	})
	flags.Func("pid", "process `id` of the -server before it; without, its processor time and memory are not known", func(s string) error {
		return o.addPID(s)
	})
	quick := flags.Bool("quick", false, "three rounds of two seconds, to see that it works")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	if flags.NArg() > 0 {
		return o, fmt.Errorf("%q is no flag; -help lists them", flags.Arg(0))
	}
	if *quick {
		o.rounds, o.seconds = 3, 2
	}
	return o, o.check()
}

// check refuses what cannot be measured.
func (o *options) check() error {
	if o.rounds < 1 || o.seconds < 1 || o.clients < 1 {
		return errors.New("-rounds, -seconds and -idle must be at least 1")
	}
	if !slices.Contains([]string{"", "trust", "md5", "scram"}, o.auth) {
		return fmt.Errorf("-auth %q is none of trust, md5, scram", o.auth)
	}
	return nil
}

// runs tells if a scenario is to be run.
func (o *options) runs(name string) bool { return len(o.only) == 0 || slices.Contains(o.only, name) }

// checkNames refuses what is no scenario.
func checkNames(only []string) error {
	for _, name := range only {
		if !slices.Contains(names(), name) {
			return fmt.Errorf("no scenario is named %q; there are %s", name, strings.Join(names(), ", "))
		}
	}
	return nil
}

func (o *options) addServer(address string) error {
	host, text, err := net.SplitHostPort(address)
	if err != nil {
		return err
	}
	port, err := strconv.Atoi(text)
	if err != nil {
		return fmt.Errorf("the port %q is no number", text)
	}
	if len(o.servers) == 2 {
		return errors.New("two servers can be compared, not more")
	}
	o.servers = append(o.servers, &system{name: address, host: host, port: port})
	return nil
}

func (o *options) addPID(text string) error {
	pid, err := strconv.Atoi(text)
	if err != nil || pid < 1 {
		return errors.New("it is no process id")
	}
	if len(o.servers) == 0 {
		return errors.New("it follows the -server that it belongs to")
	}
	o.servers[len(o.servers)-1].pid = pid
	return nil
}

// bench runs the scenarios, and prints a table of each as soon as it is done. If one
// fails, it does not run the others, but what it has found so far is kept.
func bench(o options, out, progress io.Writer) error {
	b, err := newRig(o, progress)
	if err != nil {
		return err
	}
	defer b.close()
	found := machine(b)
	var all []result
	var failed error
	for _, sc := range scenarios {
		if !o.runs(sc.name) {
			continue
		}
		got, err := b.run(sc)
		if err != nil {
			failed = fmt.Errorf("%s: %w", sc.name, err)
			break
		}
		all = append(all, got)
		report(out, got)
	}
	found.LoadAfter = loadAverage()
	if len(all) > 0 {
		describe(out, found, o)
	}
	if len(all) > 0 && o.json != "" {
		return errors.Join(failed, writeJSON(o.json, found, o, all))
	}
	return failed
}
