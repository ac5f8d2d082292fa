// Command demo shows pgebb at work: it starts a throwaway Postgres and pgebb before it,
// drives them with pgbench and psql, shows what the console says, and cleans up.
package main

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/pgebb/pgebb/internal/testpg"
)

func main() {
	binary := flag.String("pgebb", "bin/pgebb", "path of pgebb")
	seconds := flag.Int("seconds", 3, "how long each pgbench runs")
	flag.Parse()
	if err := demo(*binary, *seconds); err != nil {
		fmt.Fprintln(os.Stderr, "demo:", err)
		os.Exit(1)
	}
}

func demo(binary string, seconds int) error {
	step("Starting a throwaway Postgres")
	pg, err := testpg.Start()
	if err != nil {
		return err
	}
	defer pg.Stop()
	fmt.Printf("It listens at %s:%d.\n", pg.Host, pg.Port)

	step("Starting pgebb before it")
	o := testpg.Options{
		Binary:  binary,
		General: "default_pool_size = 10\nlog_connections = false\nlog_disconnections = false\n",
		Config:  fmt.Sprintf("[[databases]]\nname = \"demo\"\nhost = %q\nport = %d\ndatabase_name = \"postgres\"\n", pg.Host, pg.Port),
		Users:   fmt.Sprintf("[[users]]\nname = %q\npassword = %q\ndatabase = \"demo\"\n", pg.User, pg.Password),
	}
	p, err := testpg.StartPgebb(o)
	if err != nil {
		return err
	}
	for _, file := range []string{"pgdog.toml", "users.toml"} {
		b, err := os.ReadFile(filepath.Join(p.Dir, file))
		if err != nil {
			return err
		}
		fmt.Printf("--- %s\n%s", file, b)
	}
	err = drive(pg, p, seconds)
	step("Shutting down")
	if stopped := p.Stop(); err == nil {
		err = stopped
	}
	return err
}

// drive runs clients through pgebb.
func drive(pg *testpg.Server, p *testpg.Process, seconds int) error {
	bin, err := testpg.BinDir()
	if err != nil {
		return err
	}
	d := driver{p, bin, pg.User}
	step("Making pgbench's tables")
	if err := d.run("pgbench", "demo", pg.Password, "-i", "-q", "-n", "-s", "1"); err != nil {
		return err
	}
	for _, mode := range []string{"simple", "extended"} {
		step("pgbench: 16 clients on 10 servers, " + mode + " protocol")
		if err := d.run("pgbench", "demo", pg.Password, "-n", "-c", "16", "-j", "2", "-T", strconv.Itoa(seconds), "-M", mode, "-S"); err != nil {
			return err
		}
	}
	step("psql")
	if err := d.run("psql", "demo", pg.Password, "-c", "SELECT count(*) AS accounts FROM pgbench_accounts", "-c", "SELECT current_user, current_database()"); err != nil {
		return err
	}
	step("What the console shows")
	d.user = "admin"
	for _, show := range []string{"SHOW POOLS", "SHOW STATS", "SHOW SERVERS"} {
		fmt.Println(show)
		if err := d.run("psql", "admin", testpg.AdminPassword, "-x", "-c", show); err != nil {
			return err
		}
	}
	step("How to connect")
	fmt.Printf("While pgebb runs: psql -h %s -p %d -U %s demo\nand to its console: psql -h %s -p %d -U admin admin\n",
		p.Host, p.Port, pg.User, p.Host, p.Port)
	return nil
}

// driver runs Postgres's clients against pgebb.
type driver struct {
	p    *testpg.Process
	bin  string // folder of the programs
	user string
}

func (d driver) run(program, database, password string, args ...string) error {
	path := filepath.Join(d.bin, program)
	if _, err := os.Stat(path); err != nil {
		path = program // not all systems keep it with the server
	}
	cmd := exec.Command(path, append([]string{"-h", d.p.Host, "-p", strconv.Itoa(d.p.Port), "-U", d.user}, append(args, database)...)...)
	cmd.Env = append(os.Environ(), "PGPASSWORD="+password, "PGSSLMODE=disable")
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%s %s: %w", program, strings.Join(args, " "), err)
	}
	return nil
}

func step(title string) { fmt.Printf("\n== %s\n", title) }
