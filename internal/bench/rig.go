package main

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/pgebb/pgebb/frontend/frontendtest"
	"github.com/pgebb/pgebb/internal/testpg"
)

const poolSize = 20

// rig is what the scenarios run on.
type rig struct {
	o                        options
	progress                 io.Writer
	bouncer, bencher         string         // paths of programs; no bouncer if it is not installed
	pg                       *testpg.Server // nil with -server
	user, password, database string
	systems                  []*system  // the first is compared with the second
	direct                   *system    // Postgres itself; nil with -server
	crowding                 sync.Mutex // held while idle clients connect
	bouncerNames             bool       // PgBouncer carries prepared statements
	auth                     string     // how clients log in to those that were started
	tls                      bool       // they encrypt their connections
	bare                     bool       // PgBouncer has their password and no verifier
	cert, key                string     // files of the certificate that they are shown
}

// system is a pooler under test, or Postgres.
type system struct {
	name   string
	host   string
	port   int
	pid    int  // 0 if there is no one process to look at
	direct bool // it is Postgres, not a pooler
	// extended says that statements are parsed each time where others have them prepared.
	extended bool
	stop     func()
}

func newRig(o options, progress io.Writer) (*rig, error) {
	if err := raiseDescriptors(o); err != nil {
		return nil, err
	}
	b := &rig{o: o, progress: progress}
	var err error
	if b.bencher, err = testpg.Program("pgbench"); err != nil {
		return nil, err
	}
	if o.syscalls {
		if _, err := exec.LookPath("perf"); err != nil {
			return nil, fmt.Errorf("counting system calls: %w", err)
		}
	}
	if len(o.servers) > 0 {
		b.systems, b.user, b.password, b.database = o.servers, o.user, o.password, o.database
		return b, nil
	}
	if _, err := os.Stat(o.binary); err != nil {
		return nil, fmt.Errorf("%w: `make build` makes pgebb", err)
	}
	b.bouncer, _ = exec.LookPath("pgbouncer") // optional
	b.bouncerNames = b.bouncer != "" && carriesStatements(output(b.bouncer, "--version"))
	if b.pg, err = testpg.Start(); err != nil {
		return nil, err
	}
	if err := b.certificate(); err != nil {
		b.pg.Stop()
		return nil, err
	}
	b.user, b.password, b.database = b.pg.User, b.pg.Password, "postgres"
	b.direct = &system{name: "postgres", host: b.pg.Host, port: b.pg.Port, direct: true}
	return b, nil
}

// raiseDescriptors has this process and those that it starts open as many descriptors
// as they may. PgBouncer, unlike pgebb, does not see to that itself.
func raiseDescriptors(o options) error {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return fmt.Errorf("reading the limit of descriptors: %w", err)
	}
	const besides = 200 // descriptors that are no idle clients
	if (o.runs("idle") || o.runs("tls-idle")) && limit.Max < uint64(2*o.clients+besides) {
		return fmt.Errorf("twice %d idle clients need more descriptors than the %d that a process may have: raise the limit (ulimit -n) or have fewer clients (-idle)", o.clients, limit.Max)
	}
	limit.Cur = limit.Max
	// Unlike the runtime's own raise of the limit at the start, this one is inherited.
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return fmt.Errorf("raising the limit of descriptors to %d: %w", limit.Max, err)
	}
	return nil
}

func (b *rig) close() {
	b.stopSystems()
	if b.pg != nil {
		b.pg.Stop()
	}
}

func (b *rig) stopSystems() {
	for _, s := range b.systems {
		if s.stop != nil {
			s.stop()
		}
	}
	b.systems = nil
}

// prepare starts all systems anew if a scenario needs them otherwise than they are.
func (b *rig) prepare(sc scenario) error {
	auth := "trust"
	if sc.auth != "" {
		auth = sc.auth
	}
	if b.o.auth != "" {
		auth = b.o.auth
	}
	if b.pg == nil {
		b.tls = sc.tls
		return nil
	}
	if auth == b.auth && sc.tls == b.tls && sc.bare == b.bare && len(b.systems) > 0 && !sc.fresh {
		return nil
	}
	b.stopSystems()
	b.auth, b.tls, b.bare = auth, sc.tls, sc.bare
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
		General: fmt.Sprintf("default_pool_size = %d\nauth_type = %q\nlog_connections = false\nlog_disconnections = false\n", poolSize, b.auth) + b.pgebbTLS(),
		Config:  fmt.Sprintf("[[databases]]\nname = %q\nhost = %q\nport = %d\n", b.database, b.pg.Host, b.pg.Port),
		Users:   fmt.Sprintf("[[users]]\nname = %q\npassword = %q\ndatabase = %q\n", b.user, b.password, b.database),
	})
	if err != nil {
		return nil, err
	}
	stop := func() {
		if err := p.Stop(); err != nil {
			fmt.Fprintln(b.progress, "bench:", err)
		}
	}
	return &system{name: "pgebb", host: p.Host, port: p.Port, pid: p.PID(), stop: stop}, nil
}

// configureBouncer writes the files of a PgBouncer with the same pool and everything
// that could cost it time turned off. They go when Postgres's folder does.
func (b *rig) configureBouncer(port int) (ini string, err error) {
	auth, secret := b.auth, b.password
	if auth == "scram" {
		auth = "scram-sha-256"
	}
	if auth == "scram-sha-256" && !b.bare {
		if secret, err = b.verifier(); err != nil {
			return "", fmt.Errorf("configuring pgbouncer: %w", err)
		}
	}
	users := filepath.Join(b.pg.Dir, "pgbouncer.users")
	if err := os.WriteFile(users, fmt.Appendf(nil, "%q %q\n", b.user, secret), 0o644); err != nil {
		return "", fmt.Errorf("configuring pgbouncer: %w", err)
	}
	statements := ""
	if b.bouncerNames {
		statements = "max_prepared_statements = 1000\n"
	}
	ini = filepath.Join(b.pg.Dir, "pgbouncer.ini")
	text := fmt.Appendf(nil, `[databases]
%s = host=%s port=%d
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = %d
unix_socket_dir =
auth_type = %s
auth_file = %s
pool_mode = transaction
default_pool_size = %d
max_client_conn = %d
log_connections = 0
log_disconnections = 0
log_stats = 0
ignore_startup_parameters = extra_float_digits
%s`, b.database, b.pg.Host, b.pg.Port, port, auth, users, poolSize, b.o.clients+1000, statements+b.bouncerTLS())
	if err := os.WriteFile(ini, text, 0o644); err != nil {
		return "", fmt.Errorf("configuring pgbouncer: %w", err)
	}
	return ini, nil
}

// verifier is Postgres's own of the password. PgBouncer logs in to Postgres with it, and
// need not derive one at each login as it does if it is given the password.
func (b *rig) verifier() (string, error) {
	c, err := frontendtest.Connect(b.login(b.direct))
	if err != nil {
		return "", err
	}
	defer c.Close()
	rows, err := c.Query("SELECT rolpassword FROM pg_authid WHERE rolname = current_user")
	if err == nil && len(rows) != 1 {
		err = fmt.Errorf("%d users of Postgres are the one that has logged in", len(rows))
	}
	if err != nil {
		return "", err
	}
	return rows[0], nil
}

// startBouncer starts PgBouncer, as somebody else than root, as which it does not run.
func (b *rig) startBouncer() (*system, error) {
	port, err := testpg.FreePort()
	if err != nil {
		return nil, err
	}
	ini, err := b.configureBouncer(port)
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(b.bouncer, ini)
	var log bytes.Buffer
	cmd.Stdout, cmd.Stderr = &log, &log
	if cmd.SysProcAttr, err = unprivileged(); err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("starting pgbouncer: %w", err)
	}
	ended := make(chan struct{})
	go func() { // until PgBouncer has ended
		defer close(ended)
		_ = cmd.Wait() // it is killed
	}()
	stop := func() {
		_ = cmd.Process.Kill() // fails if it has ended
		<-ended
	}
	s := &system{name: "pgbouncer", host: "127.0.0.1", port: port, pid: cmd.Process.Pid, stop: stop}
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		c, err := frontendtest.Connect(b.login(s))
		if err == nil {
			return s, c.Close()
		}
		select {
		case <-ended:
			return nil, fmt.Errorf("pgbouncer has ended at its start:\n%s", &log)
		default:
		}
		if time.Now().After(deadline) {
			stop()
			return nil, fmt.Errorf("pgbouncer does not get ready: %w\n%s", err, &log)
		}
	}
}

// unprivileged is how a process is started that dies with this one and is not root.
func unprivileged() (*syscall.SysProcAttr, error) {
	attr := &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if os.Getuid() != 0 {
		return attr, nil
	}
	u, err := user.Lookup("nobody")
	if err != nil {
		return nil, fmt.Errorf("finding a user to run pgbouncer as: %w", err)
	}
	uid, _ := strconv.Atoi(u.Uid) // both are numbers on Linux
	gid, _ := strconv.Atoi(u.Gid)
	attr.Credential = &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
	return attr, nil
}

func (b *rig) login(s *system) frontendtest.Login {
	return frontendtest.Login{
		Network: "tcp", Address: net.JoinHostPort(s.host, strconv.Itoa(s.port)),
		User: b.user, Password: b.password, Database: b.database, TLS: b.clientTLS(s),
	}
}

// carriesStatements reports whether a PgBouncer with a version carries prepared statements
// from server to server: from 1.21 on.
func carriesStatements(version string) bool {
	var major, minor int
	if _, err := fmt.Sscanf(version, "PgBouncer %d.%d", &major, &minor); err != nil {
		return false
	}
	return major > 1 || major == 1 && minor >= 21
}
