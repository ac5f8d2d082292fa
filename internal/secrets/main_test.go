package secrets

import (
	"bytes"
	"context"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pgebb/pgebb/config"
	"github.com/pgebb/pgebb/internal/leak"
)

func TestMain(m *testing.M) { os.Exit(leak.Check(m)) }

// hush is part of everything here that must never be told.
const hush = "hush-hush"

// rig is a Keeper with a clock and an environment of its own, and a log.
type rig struct {
	*Keeper
	t    *testing.T
	vars map[string]string

	mu   sync.Mutex
	time time.Time    // guarded by mu
	log  bytes.Buffer // guarded by mu
}

func (r *rig) Write(p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.log.Write(p)
}

func (r *rig) now() time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.time
}

// pass lets time pass.
func (r *rig) pass(d time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.time = r.time.Add(d)
}

func newRig(t *testing.T, env map[string]string) *rig {
	r := &rig{t: t, vars: map[string]string{}, time: time.Date(2026, 2, 3, 4, 5, 6, 0, time.UTC)}
	maps.Copy(r.vars, env)
	r.Keeper = newKeeper(slog.New(slog.NewTextHandler(r, &slog.HandlerOptions{Level: slog.LevelDebug})), func(name string) string { return r.vars[name] }, r.now)
	t.Cleanup(func() {
		if strings.Contains(r.log.String(), hush) {
			t.Errorf("the log tells a secret:\n%s", r.log.String())
		}
	})
	return r
}

// get gets credentials, and looks that an error does not tell any.
func (r *rig) get(w Want) (Secret, error) {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	s, err := r.Get(ctx, w)
	if err != nil && strings.Contains(err.Error(), hush) {
		r.t.Errorf("an error tells a secret: %v", err)
	}
	return s, err
}

func (r *rig) mustGet(w Want) Secret {
	r.t.Helper()
	s, err := r.get(w)
	if err != nil {
		r.t.Fatal(err)
	}
	return s
}

// fake serves whatever its handler says, and keeps what it was asked.
type fake struct {
	*httptest.Server
	mu    sync.Mutex
	asked []string // "METHOD /path"; guarded by mu
}

func newFake(t *testing.T, serve func(w http.ResponseWriter, r *http.Request)) *fake {
	f := &fake{}
	f.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		f.mu.Lock()
		f.asked = append(f.asked, r.Method+" "+r.URL.Path)
		f.mu.Unlock()
		serve(w, r)
	}))
	t.Cleanup(f.Close)
	return f
}

// count is how often something was asked.
func (f *fake) count(what string) (n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, a := range f.asked {
		if a == what {
			n++
		}
	}
	return n
}

func rdsUser() Want {
	return Want{External: config.External{Method: config.RDSIAM}, User: "app", Host: "db.abc123.us-east-1.rds.amazonaws.com", Port: 5432}
}
