package e2e

import (
	"net"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/pgebb/pgebb/internal/testpg"
)

// TestTheServiceManagerIsTold what pgebb is doing, over the socket of sd_notify(3).
func TestTheServiceManagerIsTold(t *testing.T) {
	pg := testpg.ForTest(t)
	database := pg.Database(t)
	path := filepath.Join(t.TempDir(), "notify")
	manager, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer manager.Close()
	hears := func(want ...string) {
		t.Helper()
		b := make([]byte, 1000)
		_ = manager.SetReadDeadline(time.Now().Add(10 * time.Second))
		n, err := manager.Read(b)
		if err != nil {
			t.Fatalf("waiting for %q: %v", want, err)
		}
		for _, w := range want {
			if !strings.Contains(string(b[:n]), w) {
				t.Errorf("it is told %q, want %q", b[:n], w)
			}
		}
	}
	o := pg.Options(database, "transaction", 1)
	o.Env = append(o.Env, "NOTIFY_SOCKET="+path)
	p := testpg.Pgebb(t, o)
	hears("READY=1")
	_ = p.Signal(syscall.SIGHUP)
	hears("RELOADING=1", "MONOTONIC_USEC=")
	hears("READY=1")
	_ = p.Signal(syscall.SIGINT)
	hears("STOPPING=1")
}
