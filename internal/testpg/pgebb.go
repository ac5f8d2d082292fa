package testpg

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/pgebb/pgebb/internal/testlog"
)

// EnvBinary is the environment variable with the path of a pgebb that is built
// already.
const EnvBinary = "PGEBB_BIN"

// AdminPassword is the console's.
const AdminPassword = "admin"

// Options are how pgebb is configured.
type Options struct {
	General string // lines for [general]; host, port and unix_socket_dir are set already
	Config  string // tables for pgdog.toml, [[databases]] and what else there is
	Users   string // tables for users.toml
	Binary  string // path of pgebb
	Env     []string
}

// Process is a running pgebb.
type Process struct {
	Host string
	Port int
	Dir  string // of its files and its Unix socket

	cmd   *exec.Cmd
	log   testlog.Buffer
	ended <-chan struct{}
}

// StartPgebb starts pgebb and returns when it accepts clients.
func StartPgebb(o Options) (*Process, error) {
	dir, err := tempDir("pgebb-")
	if err != nil {
		return nil, err
	}
	p := &Process{Host: "127.0.0.1", Dir: dir}
	if err := p.start(o); err != nil {
		os.RemoveAll(dir)
		return nil, err
	}
	return p, nil
}

func (p *Process) start(o Options) (err error) {
	if p.Port, err = FreePort(); err != nil {
		return err
	}
	if err := p.Configure(o); err != nil {
		return err
	}
	p.cmd = exec.Command(o.Binary, "-c", filepath.Join(p.Dir, "pgdog.toml"), "-u", filepath.Join(p.Dir, "users.toml"), "run")
	p.cmd.Env = append(os.Environ(), append([]string{"GORACE=halt_on_error=1 exitcode=66 atexit_sleep_ms=0"}, o.Env...)...)
	p.cmd.Stdout, p.cmd.Stderr = &p.log, &p.log
	if p.ended, err = startBound(p.cmd, syscall.SIGKILL); err != nil {
		return fmt.Errorf("starting %s: %w", o.Binary, err)
	}
	return p.wait()
}

// Configure writes the configuration files; a reload makes pgebb read them.
func (p *Process) Configure(o Options) error {
	admin := fmt.Sprintf("[admin]\npassword = %q\n", AdminPassword)
	if strings.Contains(o.Config, "[admin]") {
		admin = ""
	}
	text := fmt.Sprintf("[general]\nhost = %q\nport = %d\nunix_socket_dir = %q\n%s\n\n%s\n%s", p.Host, p.Port, p.Dir, o.General, admin, o.Config)
	err := os.WriteFile(filepath.Join(p.Dir, "pgdog.toml"), []byte(text), 0o600)
	return errors.Join(err, os.WriteFile(filepath.Join(p.Dir, "users.toml"), []byte(o.Users), 0o600))
}

// wait returns when pgebb accepts: at its Unix socket, which it opens last and which,
// unlike the port, cannot be somebody else's.
func (p *Process) wait() error {
	deadline := time.Now().Add(20 * time.Second)
	for {
		conn, err := net.Dial("unix", filepath.Join(p.Dir, ".s.PGSQL."+strconv.Itoa(p.Port)))
		if err == nil {
			return conn.Close()
		}
		select {
		case <-p.ended:
			return fmt.Errorf("pgebb has ended at its start (exit code %d):\n%s", p.ExitCode(), p.Log())
		case <-time.After(5 * time.Millisecond):
		}
		if time.Now().After(deadline) {
			_ = p.Signal(syscall.SIGKILL) // fails if it has ended
			<-p.ended
			return fmt.Errorf("pgebb does not get ready: %w\n%s", err, p.Log())
		}
	}
}

// Address is where clients connect to.
func (p *Process) Address() string { return net.JoinHostPort(p.Host, strconv.Itoa(p.Port)) }

// URL is how to connect to a database through it.
func (p *Process) URL(database, user, password string) string {
	return postgresURL(p.Host, p.Port, database, user, password)
}

// PID is the process's id.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Log is what it has said so far.
func (p *Process) Log() string { return p.log.String() }

// Signal sends it a signal.
func (p *Process) Signal(s os.Signal) error { return p.cmd.Process.Signal(s) }

// Done is closed when it has ended.
func (p *Process) Done() <-chan struct{} { return p.ended }

// ExitCode is its exit code; valid when Done is closed.
func (p *Process) ExitCode() int { return p.cmd.ProcessState.ExitCode() }

// Stop shuts it down gracefully, or kills it after a while, and removes its folder. The
// error says how it has misbehaved.
func (p *Process) Stop() error {
	defer os.RemoveAll(p.Dir)
	_ = p.Signal(syscall.SIGINT) // if it has ended already, that shows below
	select {
	case <-p.ended:
	case <-time.After(15 * time.Second):
		_ = p.Signal(syscall.SIGQUIT)
		<-p.ended
		return fmt.Errorf("pgebb does not shut down:\n%s", p.Log())
	}
	log := p.Log()
	for _, bad := range []string{"DATA RACE", "panic:", "fatal error:"} {
		if strings.Contains(log, bad) {
			return fmt.Errorf("pgebb says %q:\n%s", bad, log)
		}
	}
	if p.ExitCode() != 0 {
		return fmt.Errorf("pgebb ended with exit code %d:\n%s", p.ExitCode(), log)
	}
	return nil
}
