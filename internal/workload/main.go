// Command workload puts the loads on a pooler that make poolers grow, and shows how its
// memory goes up and comes back: phase by phase, and as a plot.
//
// A [load] is what clients do, a [run] one time that it is done, and the [meter] what
// reads the pooler's memory meanwhile: of any process its resident pages, and of pgebb
// what its console says of them.
//
// With -server and -pid it loads a pooler that runs already. Otherwise it starts a
// throwaway Postgres, and pgebb or PgBouncer before it.
//
// The caveat that bites: with -server the loads are put on whatever database is behind
// it. They create nothing and read no tables, but they are loads.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/pgebb/pgebb/internal/testpg"
)

// options are the command line's.
type options struct {
	binary  string
	pooler  string // what to start: pgebb or pgbouncer
	parser  string // query_parser of pgebb
	limit   int64  // memory.limit of pgebb; 0 for none
	scale   float64
	only    []string // names of loads; none for all
	plots   string   // folder for plots; none if empty
	server  string   // address of a pooler that runs already
	pid     int      // its process; 0 if it is not known
	admin   string   // password of its console; none if empty
	user    string
	db      string
	secret  string // PGPASSWORD
	verbose bool
}

func main() {
	o, err := parse(os.Args[1:], os.Stderr)
	if errors.Is(err, flag.ErrHelp) {
		return
	}
	if err == nil {
		err = runAll(o, os.Stdout)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "workload:", err)
		os.Exit(1)
	}
}

// parse reads the command line.
func parse(args []string, usage io.Writer) (options, error) {
	o := options{binary: "bin/pgebb", secret: os.Getenv("PGPASSWORD")}
	if binary := os.Getenv(testpg.EnvBinary); binary != "" {
		o.binary = binary
	}
	flags := flag.NewFlagSet("workload", flag.ContinueOnError)
	flags.SetOutput(usage)
	flags.StringVar(&o.binary, "pgebb", o.binary, "`path` of pgebb, built without the race detector; "+testpg.EnvBinary+" names another")
	flags.StringVar(&o.pooler, "pooler", "pgebb", "what to start: pgebb or pgbouncer")
	flags.StringVar(&o.parser, "parser", "off", "query_parser of pgebb: off or on")
	flags.Int64Var(&o.limit, "limit", 0, "memory.limit of pgebb in bytes")
	flags.Float64Var(&o.scale, "scale", 1, "do so much of each load; 0.01 is a hundredth")
	flags.StringVar(&o.plots, "plots", "", "write a plot of each load to this `folder`")
	flags.StringVar(&o.server, "server", "", "load the pooler at this `address` instead of starting one")
	flags.IntVar(&o.pid, "pid", 0, "process `id` of -server")
	flags.StringVar(&o.admin, "admin", "", "`password` of the user admin of the database admin of -server, if that is a pgebb")
	flags.StringVar(&o.user, "user", "postgres", "user at -server; PGPASSWORD is the password")
	flags.StringVar(&o.db, "database", "postgres", "database at -server")
	flags.BoolVar(&o.verbose, "v", false, "print the whole account of pgebb's memory at each phase")
	flags.Func("only", "run only these `loads`, with commas between: "+strings.Join(names(), ", "), func(s string) error {
		o.only = strings.Split(s, ",")
		for _, name := range o.only {
			if !slices.Contains(names(), name) {
				return fmt.Errorf("no load is named %q; there are %s", name, strings.Join(names(), ", "))
			}
		}
		return nil
	})
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	switch {
	case flags.NArg() > 0:
		return o, fmt.Errorf("%q is no flag; -help lists them", flags.Arg(0))
	case o.scale <= 0 || o.scale > 1:
		return o, errors.New("-scale must be above 0 and at most 1")
	case o.pooler != "pgebb" && o.pooler != "pgbouncer":
		return o, fmt.Errorf("-pooler %q is neither pgebb nor pgbouncer", o.pooler)
	case o.server != "" && o.pid == 0:
		return o, errors.New("-server needs the -pid of its process, or there is nothing to see")
	}
	return o, nil
}

// runAll runs the loads, each before a pooler of its own if it is started here.
func runAll(o options, out io.Writer) error {
	if err := raiseDescriptors(); err != nil {
		return err
	}
	var pg *testpg.Server
	if o.server == "" {
		var err error
		if pg, err = testpg.Start(); err != nil {
			return err
		}
		defer pg.Stop()
	}
	for _, l := range loads {
		if len(o.only) > 0 && !slices.Contains(o.only, l.name) {
			continue
		}
		r, err := one(o, pg, l)
		if r != nil {
			report(out, o, r)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", l.name, err)
		}
		if o.plots != "" {
			if err := writePlot(o.plots, r); err != nil {
				return err
			}
		}
	}
	return nil
}

// one runs a load once. The run is returned with an error, too, as far as it came.
func one(o options, pg *testpg.Server, l load) (*run, error) {
	s, err := startSystem(o, pg, l)
	if err != nil {
		return nil, err
	}
	defer s.stop()
	r := &run{load: l, system: s, scale: o.scale}
	if r.meter, err = newMeter(s); err != nil {
		return nil, err
	}
	defer r.meter.close()
	if err := r.settle("baseline"); err != nil {
		return r, err
	}
	return r, l.do(r)
}
