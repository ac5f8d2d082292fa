package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"

	"github.com/pgebb/pgebb/frontend/frontendtest"
	"github.com/pgebb/pgebb/internal/testpg"
)

// system is the pooler that a load is put on.
type system struct {
	name  string
	pid   int
	login frontendtest.Login
	admin frontendtest.Login // of the console; without a user if there is none like pgebb's
	stop  func()
}

// startSystem starts a pooler for a load, or takes the one that runs already.
func startSystem(o options, pg *testpg.Server, l load) (*system, error) {
	if o.server != "" {
		s := &system{name: o.server, pid: o.pid, stop: func() {}, login: loginAt(o.server, o.user, o.secret, o.db)}
		if o.admin != "" {
			s.admin = loginAt(o.server, "admin", o.admin, "admin")
		}
		return s, nil
	}
	if o.pooler == "pgbouncer" {
		b, err := testpg.StartBouncer(pg, "postgres", l.pool, 20_000)
		if err != nil {
			return nil, err
		}
		return &system{name: "pgbouncer", pid: b.PID, stop: b.Stop, login: loginAt(b.Address, pg.User, pg.Password, "postgres")}, nil
	}
	installed, err := install(o.binary)
	if err != nil {
		return nil, err
	}
	defer os.Remove(installed) // while it runs it needs no name
	o.binary = installed
	p, err := testpg.StartPgebb(pgebbOptions(o, pg, l))
	if err != nil {
		return nil, err
	}
	return systemOf(p, pg), nil
}

// install copies a program, as any installation does. A file that the linker has just written
// is in the system's cache in pieces of up to 2 MiB, and Linux maps a whole piece
// where one page of it is needed: megabytes that no user ever sees.
func install(binary string) (string, error) {
	from, err := os.Open(binary)
	if err != nil {
		return "", fmt.Errorf("installing pgebb: %w", err)
	}
	defer from.Close()
	to, err := os.CreateTemp("", "pgebb-")
	if err != nil {
		return "", fmt.Errorf("installing %s: %w", binary, err)
	}
	_, err = io.Copy(to, from)
	if err = errors.Join(err, to.Chmod(0o700), to.Close()); err != nil {
		os.Remove(to.Name())
		return "", fmt.Errorf("installing %s as %s: %w", binary, to.Name(), err)
	}
	return to.Name(), nil
}

// systemOf is a pgebb before a Postgres.
func systemOf(p *testpg.Process, pg *testpg.Server) *system {
	stop := func() {
		if err := p.Stop(); err != nil {
			fmt.Fprintln(os.Stderr, "workload:", err)
		}
	}
	return &system{
		name: "pgebb", pid: p.PID(), stop: stop,
		login: loginAt(p.Address(), pg.User, pg.Password, "postgres"), admin: loginAt(p.Address(), "admin", testpg.AdminPassword, "admin"),
	}
}

// pgebbOptions are for the pool and the settings that a load needs.
func pgebbOptions(o options, pg *testpg.Server, l load) testpg.Options {
	memory, parser := "", o.parser
	if l.parser != "" {
		parser = l.parser
	}
	if o.limit > 0 {
		memory = fmt.Sprintf("[memory]\nlimit = %d\n", o.limit)
	}
	return testpg.Options{
		Binary: o.binary,
		General: fmt.Sprintf("default_pool_size = %d\nquery_parser = %q\nauth_type = \"trust\"\ncheckout_timeout = 120_000\nlog_connections = false\nlog_disconnections = false\n%s",
			l.pool, parser, l.general),
		Config: fmt.Sprintf("[[databases]]\nname = \"postgres\"\nhost = %q\nport = %d\n%s", pg.Host, pg.Port, memory),
		Users:  fmt.Sprintf("[[users]]\nname = %q\npassword = %q\ndatabase = \"postgres\"\n", pg.User, pg.Password),
	}
}

func loginAt(address, user, password, database string) frontendtest.Login {
	return frontendtest.Login{Network: "tcp", Address: address, User: user, Password: password, Database: database}
}

// raiseDescriptors has this process and those that it starts open as many descriptors
// as they may.
func raiseDescriptors() error {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return fmt.Errorf("reading the limit of descriptors: %w", err)
	}
	limit.Cur = limit.Max
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return fmt.Errorf("raising the limit of descriptors to %d: %w", limit.Max, err)
	}
	return nil
}
