// Command demo shows pgebb at work: it starts a throwaway Postgres and pgebb before it,
// drives them with pgbench and psql, shows what the console says, and cleans up.
package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"

	"github.com/jackc/pgx/v5"

	"github.com/pgebb/pgebb/internal/testpg"
)

// name is the demo's database, its role, and the role's password.
const name = "demo"

func main() {
	binary := flag.String("pgebb", "bin/pgebb", "path of pgebb")
	seconds := flag.Int("seconds", 3, "how long each pgbench runs")
	keep := flag.Bool("keep", false, "keep all running until Enter or Ctrl-C is pressed")
	flag.Parse()
	if err := demo(*binary, *seconds, *keep); err != nil {
		fmt.Fprintln(os.Stderr, "demo:", err)
		os.Exit(1)
	}
}

func demo(binary string, seconds int, keep bool) error {
	step("Starting a throwaway Postgres")
	pg, err := testpg.Start()
	if err != nil {
		return err
	}
	defer pg.Stop()
	if err := prepare(pg); err != nil {
		return err
	}
	fmt.Printf("It listens at %s:%d and has a database and a role %q.\n", pg.Host, pg.Port, name)

	step("Starting pgebb before it")
	p, err := testpg.StartPgebb(testpg.Options{
		Binary:  binary,
		General: "pooler_mode = \"transaction\"\ndefault_pool_size = 10\nlog_connections = false\nlog_disconnections = false\n",
		Config:  fmt.Sprintf("[[databases]]\nname = %q\nhost = %q\nport = %d\n", name, pg.Host, pg.Port),
		Users:   fmt.Sprintf("[[users]]\nname = %q\npassword = %q\ndatabase = %q\n", name, name, name),
	})
	if err != nil {
		return err
	}
	err = show(p, seconds, keep)
	step("Shutting down")
	if stopped := p.Stop(); err == nil {
		err = stopped
	}
	return err
}

// prepare makes the demo's role and database.
func prepare(pg *testpg.Server) error {
	ctx := context.Background()
	conn, err := pgx.Connect(ctx, pg.URL("postgres"))
	if err != nil {
		return fmt.Errorf("connecting to Postgres: %w", err)
	}
	defer conn.Close(ctx)
	for _, sql := range []string{
		fmt.Sprintf("CREATE ROLE %s LOGIN PASSWORD '%s'", name, name),
		fmt.Sprintf("CREATE DATABASE %s OWNER %s", name, name),
	} {
		if _, err := conn.Exec(ctx, sql); err != nil {
			return fmt.Errorf("%s: %w", sql, err)
		}
	}
	return nil
}

// show runs clients through pgebb and tells what comes of it.
func show(p *testpg.Process, seconds int, keep bool) error {
	for _, file := range []string{"pgdog.toml", "users.toml"} {
		b, err := os.ReadFile(filepath.Join(p.Dir, file))
		if err != nil {
			return fmt.Errorf("showing the configuration: %w", err)
		}
		fmt.Printf("--- %s\n%s", file, b)
	}
	client := driver{p, name, name}
	step("Making pgbench's tables")
	if _, err := client.run("pgbench", name, "-i", "-q", "-n", "-s", "1"); err != nil {
		return err
	}
	var results []string
	for _, protocol := range []string{"simple", "extended", "prepared"} {
		step("pgbench: 16 clients on 10 servers, " + protocol + " protocol")
		said, err := client.run("pgbench", name, "-n", "-c", "16", "-j", "2", "-T", strconv.Itoa(seconds), "-M", protocol, "-S")
		if err != nil {
			return err
		}
		tps := regexp.MustCompile(`(?m)^tps = ([0-9]+)`).FindStringSubmatch(said)
		if tps == nil {
			return errors.New("pgbench does not say how many transactions it has made")
		}
		results = append(results, fmt.Sprintf("%s protocol: %s transactions per second", protocol, tps[1]))
	}
	step("psql")
	if _, err := client.run("psql", name, "-c", "SELECT count(*) AS accounts FROM pgbench_accounts", "-c", "SELECT current_user, current_database()"); err != nil {
		return err
	}
	console := driver{p, "admin", testpg.AdminPassword}
	for _, command := range []string{"SHOW POOLS", "SHOW STATS"} {
		step("The console: " + command)
		if _, err := console.run("psql", "admin", "-x", "-c", command); err != nil {
			return err
		}
	}
	step("Results")
	fmt.Println(strings.Join(results, "\n"))
	step("How to connect")
	fmt.Printf("To the database: psql '%s'\nTo the console:  psql '%s'\n",
		p.URL(name, name, name), p.URL("admin", "admin", testpg.AdminPassword))
	if keep {
		fmt.Println("Press Enter or Ctrl-C to end the demo.")
		wait()
	} else {
		fmt.Println("That is while pgebb runs: `make demo KEEP=1` keeps it running until you press Enter.")
	}
	return nil
}

// wait returns when the user has seen enough.
func wait() {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM)
	entered := make(chan struct{})
	go func() {
		defer close(entered)
		_, _ = bufio.NewReader(os.Stdin).ReadString('\n') // the end of the input ends the demo, too
	}()
	select {
	case <-signals:
	case <-entered:
	}
}

// driver runs Postgres's client programs against pgebb.
type driver struct {
	p              *testpg.Process
	user, password string
}

// run runs a program, shows what it says, and returns it.
func (d driver) run(program, database string, args ...string) (string, error) {
	path, err := testpg.Program(program)
	if err != nil {
		return "", err
	}
	var said bytes.Buffer
	cmd := exec.Command(path, append([]string{"-h", d.p.Host, "-p", strconv.Itoa(d.p.Port), "-U", d.user}, append(args, database)...)...)
	cmd.Env = append(os.Environ(), "PGPASSWORD="+d.password, "PGSSLMODE=disable", "PGOPTIONS=", "PAGER=")
	cmd.Stdout, cmd.Stderr = &said, os.Stderr
	err = cmd.Run()
	fmt.Print(zeroAverage.ReplaceAllString(said.String(), ""))
	if err != nil {
		return "", fmt.Errorf("%s %s: %w", program, strings.Join(args, " "), err)
	}
	return said.String(), nil
}

// zeroAverage is a line of SHOW STATS that says nothing: averages are taken over stats_period,
// which is longer than the demo, or in which nothing was done.
var zeroAverage = regexp.MustCompile(`(?m)^avg_\w+ *\| 0(\.0*)?\n`)

func step(title string) { fmt.Printf("\n== %s\n", title) }
