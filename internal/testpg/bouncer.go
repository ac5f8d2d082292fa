package testpg

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"time"
)

// Bouncer is a running PgBouncer.
type Bouncer struct {
	Address string
	PID     int
	cmd     *exec.Cmd
	ended   <-chan struct{}
}

// StartBouncer starts the pgbouncer on the PATH before a database of a Postgres, in
// transaction mode and with trust, and returns when it accepts clients.
func StartBouncer(pg *Server, database string, size, clients int) (*Bouncer, error) {
	path, err := exec.LookPath("pgbouncer")
	if err != nil {
		return nil, err
	}
	port, err := FreePort()
	if err != nil {
		return nil, err
	}
	users := filepath.Join(pg.Dir, "pgbouncer.users")
	ini := filepath.Join(pg.Dir, fmt.Sprintf("pgbouncer-%d.ini", port))
	text := fmt.Sprintf(`[databases]
%s = host=%s port=%d
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = %d
unix_socket_dir =
auth_type = trust
auth_file = %s
pool_mode = transaction
default_pool_size = %d
max_client_conn = %d
log_connections = 0
log_disconnections = 0
ignore_startup_parameters = extra_float_digits
`, database, pg.Host, pg.Port, port, users, size, clients)
	if err := os.WriteFile(users, fmt.Appendf(nil, "%q %q\n", pg.User, pg.Password), 0o644); err != nil {
		return nil, fmt.Errorf("configuring pgbouncer: %w", err)
	}
	if err := os.WriteFile(ini, []byte(text), 0o644); err != nil {
		return nil, fmt.Errorf("configuring pgbouncer: %w", err)
	}
	b := &Bouncer{Address: net.JoinHostPort("127.0.0.1", strconv.Itoa(port)), cmd: exec.Command(path, ini)}
	var log bytes.Buffer
	b.cmd.Stdout, b.cmd.Stderr = &log, &log
	if err := unprivileged(b.cmd); err != nil {
		return nil, err
	}
	if b.ended, err = startBound(b.cmd, syscall.SIGKILL); err != nil {
		return nil, fmt.Errorf("starting pgbouncer: %w", err)
	}
	b.PID = b.cmd.Process.Pid
	return b, b.wait(&log)
}

// wait returns when PgBouncer accepts connections.
func (b *Bouncer) wait(log *bytes.Buffer) error {
	ticker := time.NewTicker(10 * time.Millisecond)
	defer ticker.Stop()
	for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); {
		if conn, err := net.Dial("tcp", b.Address); err == nil {
			return conn.Close()
		}
		select {
		case <-b.ended:
			return fmt.Errorf("pgbouncer has ended at its start:\n%s", log)
		case <-ticker.C:
		}
	}
	b.Stop()
	return fmt.Errorf("pgbouncer does not get ready:\n%s", log)
}

// Stop kills it and returns when it has ended.
func (b *Bouncer) Stop() {
	_ = b.cmd.Process.Kill() // fails if it has ended
	<-b.ended
}
