package main

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"github.com/pgebb/pgebb/frontend/frontendtest"
	"github.com/pgebb/pgebb/internal/testpg"
)

const poolSize = 20

// rig is what the scenarios run on.
type rig struct {
	o                options
	postgres         string // paths of programs
	bouncer, bencher string
	pg               *testpg.Server
	systems          []*system
	dir              string // of PgBouncer's files and the scripts
	script           string // for pgbench
}

// system is a pooler under test.
type system struct {
	name string
	port int
	pid  int
	stop func()
}

func (s *system) address() string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(s.port)) }

func newRig(o options) (*rig, error) {
	b := &rig{o: o}
	b.bouncer, _ = exec.LookPath("pgbouncer") // optional
	var err error
	if b.postgres, err = testpg.Program("postgres"); err != nil {
		return nil, err
	}
	if b.bencher, err = testpg.Program("pgbench"); err != nil {
		return nil, err
	}
	if b.dir, err = os.MkdirTemp("/tmp", "pgebb-bench-"); err != nil {
		return nil, err
	}
	if err := os.Chmod(b.dir, 0o777); err != nil {
		return nil, err
	}
	b.script = filepath.Join(b.dir, "select1.sql")
	if err := os.WriteFile(b.script, []byte("SELECT 1;\n"), 0o644); err != nil {
		return nil, err
	}
	if b.pg, err = testpg.Start(); err != nil {
		return nil, err
	}
	if err := b.restart(); err != nil {
		b.close()
		return nil, err
	}
	return b, nil
}

func (b *rig) close() {
	for _, s := range b.systems {
		s.stop()
	}
	if b.pg != nil {
		b.pg.Stop()
	}
	os.RemoveAll(b.dir)
}

// restart starts all systems anew.
func (b *rig) restart() error {
	for _, s := range b.systems {
		s.stop()
	}
	b.systems = nil
	s, err := b.startPgebb()
	if err != nil {
		return err
	}
	b.systems = append(b.systems, s)
	if b.bouncer != "" {
		if s, err = b.startBouncer(); err != nil {
			return err
		}
		b.systems = append(b.systems, s)
	}
	return nil
}

func (b *rig) startPgebb() (*system, error) {
	p, err := testpg.StartPgebb(testpg.Options{
		Binary:  b.o.binary,
		General: fmt.Sprintf("default_pool_size = %d\nauth_type = \"trust\"\nlog_connections = false\nlog_disconnections = false\n", poolSize),
		Config:  fmt.Sprintf("[[databases]]\nname = \"postgres\"\nhost = %q\nport = %d\n", b.pg.Host, b.pg.Port),
		Users:   fmt.Sprintf("[[users]]\nname = %q\npassword = %q\ndatabase = \"postgres\"\n", b.pg.User, b.pg.Password),
	})
	if err != nil {
		return nil, err
	}
	stop := func() {
		if err := p.Stop(); err != nil {
			fmt.Fprintln(os.Stderr, "bench:", err)
		}
	}
	return &system{name: "pgebb", port: p.Port, pid: p.PID(), stop: stop}, nil
}

// startBouncer starts PgBouncer with the same pool, and everything that could cost it
// time turned off; it does not run as root.
func (b *rig) startBouncer() (*system, error) {
	port, err := testpg.FreePort()
	if err != nil {
		return nil, err
	}
	ini := filepath.Join(b.dir, "pgbouncer.ini")
	text := fmt.Sprintf(`[databases]
postgres = host=%s port=%d dbname=postgres user=%s password=%s
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = %d
unix_socket_dir =
auth_type = any
pool_mode = transaction
default_pool_size = %d
max_client_conn = 20000
log_connections = 0
log_disconnections = 0
log_stats = 0
ignore_startup_parameters = extra_float_digits
logfile = %s/pgbouncer.log
`, b.pg.Host, b.pg.Port, b.pg.User, b.pg.Password, port, poolSize, b.dir)
	if err := os.WriteFile(ini, []byte(text), 0o644); err != nil {
		return nil, err
	}
	cmd := exec.Command(b.bouncer, "-q", ini)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if os.Getuid() == 0 {
		u, err := user.Lookup("nobody")
		if err != nil {
			return nil, err
		}
		uid, _ := strconv.Atoi(u.Uid) // both are numbers on Linux
		gid, _ := strconv.Atoi(u.Gid)
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("starting pgbouncer: %w", err)
	}
	s := &system{name: "pgbouncer", port: port, pid: cmd.Process.Pid, stop: func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }}
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		c, err := frontendtest.Connect(b.login(s))
		if err == nil {
			return s, c.Close()
		}
		if time.Now().After(deadline) {
			s.stop()
			return nil, fmt.Errorf("pgbouncer does not get ready: %w", err)
		}
	}
}

func (b *rig) login(s *system) frontendtest.Login {
	return frontendtest.Login{Network: "tcp", Address: s.address(), User: b.pg.User, Password: b.pg.Password, Database: "postgres"}
}
