// Package testpg runs throwaway servers for tests, benchmarks and the demo: a
// Postgres in a temporary folder, and pgebb in front of it.
//
// [Start] and [StartPgebb] are for programs; [ForTest] and [Pgebb] are for tests, share
// one Postgres per test binary, and clean up by themselves.
//
// It is no part of pgebb, and nothing that pgebb is made of imports it.
//
// The caveat that bites: Postgres refuses to run as root, so it is run as "nobody"
// then, and its folder must be in a place that nobody can reach.
package testpg

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
)

// EnvURL is the environment variable with the URL of a Postgres that is running
// already, as a superuser with a password.
const EnvURL = "PGEBB_TEST_POSTGRES"

// Password is the superuser's.
const Password = "postgres"

// Server is a running Postgres.
type Server struct {
	Host     string // loopback address
	Port     int
	Dir      string // folder of its Unix socket
	Password string
	User     string // a superuser

	data     string // folder of all, empty if it was running already
	settings []string
	cmd      *exec.Cmd
	ended    <-chan struct{}
}

// unprivileged makes a command run as somebody other than root.
func unprivileged(cmd *exec.Cmd) error {
	cmd.SysProcAttr = &syscall.SysProcAttr{}
	if os.Getuid() != 0 {
		return nil
	}
	uid, gid, err := nobody()
	if err != nil {
		return err
	}
	cmd.SysProcAttr.Credential = &syscall.Credential{Uid: uid, Gid: gid, NoSetGroups: false}
	return nil
}

func nobody() (uid, gid uint32, err error) {
	u, err := user.Lookup("nobody")
	if err != nil {
		return 0, 0, fmt.Errorf("finding a user to run Postgres as: %w", err)
	}
	id, err1 := strconv.ParseUint(u.Uid, 10, 32)
	group, err2 := strconv.ParseUint(u.Gid, 10, 32)
	return uint32(id), uint32(group), errors.Join(err1, err2)
}

// Start makes a database cluster in a temporary folder and starts a Postgres on it.
// settings are lines for postgresql.conf.
func Start(settings ...string) (*Server, error) {
	bin, err := BinDir()
	if err != nil {
		return nil, err
	}
	dir, err := tempDir("pgebb-pg-")
	if err != nil {
		return nil, err
	}
	s := &Server{Host: "127.0.0.1", Dir: dir, User: "postgres", Password: Password, data: dir, settings: settings}
	err = s.prepare()
	if err == nil {
		err = s.initialize(bin)
	}
	if err == nil {
		err = s.start(bin)
	}
	if err != nil {
		os.RemoveAll(dir)
		return nil, err
	}
	return s, nil
}

// prepare makes the folder one that Postgres can use, and finds a port.
func (s *Server) prepare() (err error) {
	if s.Port, err = FreePort(); err != nil {
		return err
	}
	if os.Getuid() == 0 {
		uid, gid, err := nobody()
		if err != nil {
			return err
		}
		if err := os.Chown(s.data, int(uid), int(gid)); err != nil {
			return fmt.Errorf("giving Postgres its folder: %w", err)
		}
	}
	if err := os.Chmod(s.data, 0o755); err != nil {
		return fmt.Errorf("giving Postgres its folder: %w", err)
	}
	return nil
}

// initialize makes the database cluster.
func (s *Server) initialize(bin string) error {
	passwords := filepath.Join(s.data, "password")
	if err := os.WriteFile(passwords, []byte(Password+"\n"), 0o644); err != nil {
		return fmt.Errorf("preparing Postgres: %w", err)
	}
	initdb := exec.Command(filepath.Join(bin, "initdb"), "-D", filepath.Join(s.data, "data"), "-U", s.User, "--pwfile", passwords, "-E", "UTF8",
		"--locale=C", "--auth-local=trust", "--auth-host=scram-sha-256", "--no-sync")
	return s.run(initdb)
}

// run runs one of Postgres's programs to its end.
func (s *Server) run(cmd *exec.Cmd) error {
	if err := unprivileged(cmd); err != nil {
		return err
	}
	cmd.Dir = s.data
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w\n%s", filepath.Base(cmd.Path), err, out)
	}
	return nil
}

func (s *Server) start(bin string) error {
	args := []string{"-D", filepath.Join(s.data, "data"), "-p", strconv.Itoa(s.Port), "-k", s.Dir, "-c", "listen_addresses=127.0.0.1"}
	for _, setting := range append([]string{
		"fsync=off", "synchronous_commit=off", "full_page_writes=off", "shared_buffers=64MB", "max_connections=300",
		"log_min_messages=fatal", "autovacuum=off", "timezone=UTC", "log_timezone=UTC", "max_wal_size=256MB",
	}, s.settings...) {
		args = append(args, "-c", setting)
	}
	s.cmd = exec.Command(filepath.Join(bin, "postgres"), args...)
	if err := unprivileged(s.cmd); err != nil {
		return err
	}
	s.cmd.Dir = s.data
	log, err := os.Create(filepath.Join(s.data, "log"))
	if err != nil {
		return fmt.Errorf("preparing Postgres: %w", err)
	}
	defer log.Close()
	s.cmd.Stdout, s.cmd.Stderr = log, log
	if s.ended, err = startBound(s.cmd, syscall.SIGQUIT); err != nil {
		return fmt.Errorf("starting Postgres: %w", err)
	}
	return s.wait()
}

// wait returns when Postgres accepts connections.
func (s *Server) wait() error {
	deadline := time.Now().Add(30 * time.Second)
	for {
		ctx, cancel := context.WithDeadline(context.Background(), deadline)
		conn, err := pgx.Connect(ctx, s.URL("postgres"))
		cancel()
		if err == nil {
			return conn.Close(context.Background())
		}
		select {
		case <-s.ended:
			log, _ := os.ReadFile(filepath.Join(s.data, "log")) // to show what there is
			return fmt.Errorf("the Postgres in %s has ended at its start:\n%s", s.data, log)
		case <-time.After(20 * time.Millisecond):
		}
		if time.Now().After(deadline) {
			s.Stop()
			return fmt.Errorf("waiting for Postgres: %w", err)
		}
	}
}

// URL is how to connect to a database as the superuser.
func (s *Server) URL(database string) string {
	return postgresURL(s.Host, s.Port, database, s.User, s.Password)
}

func postgresURL(host string, port int, database, user, password string) string {
	u := url.URL{Scheme: "postgres", User: url.UserPassword(user, password), Host: net.JoinHostPort(host, strconv.Itoa(port)), Path: "/" + database}
	u.RawQuery = "sslmode=disable"
	return u.String()
}

// Stop ends Postgres and removes its folder.
func (s *Server) Stop() {
	if s.cmd == nil {
		return
	}
	s.Kill()
	os.RemoveAll(s.data)
}

// Kill ends Postgres at once, as a crash would; what it has on disk stays.
func (s *Server) Kill() {
	_ = s.cmd.Process.Signal(syscall.SIGQUIT) // immediate shutdown, children included; fails if it has ended
	select {
	case <-s.ended:
	case <-time.After(10 * time.Second):
		_ = s.cmd.Process.Kill()
		<-s.ended
	}
}

// Restart starts Postgres again after [Server.Kill], at the same port.
func (s *Server) Restart() error {
	bin, err := BinDir()
	if err != nil {
		return err
	}
	return s.start(bin)
}

// Running returns the Postgres that EnvURL names.
func Running(text string) (*Server, error) {
	u, err := url.Parse(text)
	if err != nil {
		return nil, fmt.Errorf("%s is no URL: %w", EnvURL, err)
	}
	port, err := strconv.Atoi(u.Port())
	if err != nil {
		return nil, fmt.Errorf("%s has no port", EnvURL)
	}
	password, _ := u.User.Password()
	s := &Server{Host: u.Hostname(), Port: port, User: u.User.Username(), Password: password, Dir: u.Query().Get("host")}
	return s, nil
}

// Env is a line for the environment that makes [ForTest] use this server.
func (s *Server) Env() string {
	return EnvURL + "=" + strings.Replace(s.URL("postgres"), "sslmode=disable", "sslmode=disable&host="+url.QueryEscape(s.Dir), 1)
}
