package pool_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/pgebb/pgebb/backend"
	"github.com/pgebb/pgebb/backend/backendtest"
	"github.com/pgebb/pgebb/config"
	"github.com/pgebb/pgebb/internal/leak"
	"github.com/pgebb/pgebb/internal/loop"
	"github.com/pgebb/pgebb/internal/testlog"
	"github.com/pgebb/pgebb/pool"
)

func TestMain(m *testing.M) { os.Exit(leak.Check(m)) }

// rig is a pool before a fake Postgres.
type rig struct {
	t        *testing.T
	fake     *backendtest.Fake
	loops    *loop.Group
	registry *pool.Registry
	pool     *pool.Pool
	log      testlog.Buffer
}

func load(t *testing.T, port int, general string) *config.Config {
	t.Helper()
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	cfg, problems := config.Load(config.Source{
		ConfigPath: write("pgdog.toml", fmt.Sprintf("[general]\n%s\n[[databases]]\nname = \"d\"\nhost = \"127.0.0.1\"\nport = %d\n", general, port)),
		UsersPath:  write("users.toml", "[[users]]\nname = \"u\"\npassword = \"p\"\ndatabase = \"d\"\n"),
	})
	if err := problems.Err(); err != nil {
		t.Fatal(err)
	}
	return cfg
}

func newRig(t *testing.T, workers int, general string) *rig {
	t.Helper()
	fake, err := backendtest.Start()
	if err != nil {
		t.Fatal(err)
	}
	loops, err := loop.NewGroup(workers, nil)
	if err != nil {
		t.Fatal(err)
	}
	r := &rig{t: t, fake: fake, loops: loops}
	r.registry = pool.NewRegistry(loops, load(t, fake.Port(), general), backend.TCPOptions{}, slog.New(slog.NewTextHandler(&r.log, nil)))
	r.pool = r.registry.Find("u", "d")
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		r.registry.Close(ctx)
		fake.Stop()
		loops.Stop()
	})
	return r
}

// client is somebody who takes servers and gives them back.
type client struct {
	backend.Client // nothing of it is called: nothing is ever said
	r              *rig
	loop           *loop.Loop
	waiter         pool.Waiter
	id             uint64
	granted        chan *backend.Server
	refused        chan error
}

func (r *rig) client(id uint64, on int) *client {
	c := &client{r: r, id: id, loop: r.loops.Loops()[on], granted: make(chan *backend.Server, 1), refused: make(chan error, 1)}
	c.waiter = pool.Waiter{Grantee: c, Loop: c.loop}
	return c
}

func (c *client) Granted(s *backend.Server) {
	s.Take(c, c.id, backend.RecoveryPolicy{}, &backend.StatementPolicy{Limit: 10})
	c.granted <- s
}

func (c *client) Refused(reason error) { c.refused <- reason }

func (c *client) Blocked() bool { return true }

func (c *client) ServerLost(*backend.Server, error) {}

// acquire asks for a server.
func (c *client) acquire() {
	c.r.t.Helper()
	c.loop.Call(func() {
		s, err := c.r.pool.Acquire(&c.waiter)
		if err != nil {
			c.refused <- err
		} else if s != nil {
			c.Granted(s)
		}
	})
}

func (c *client) server() *backend.Server {
	c.r.t.Helper()
	select {
	case s := <-c.granted:
		return s
	case err := <-c.refused:
		c.r.t.Fatalf("client %d is refused: %v", c.id, err)
	case <-time.After(10 * time.Second):
		c.r.t.Fatalf("client %d gets nothing", c.id)
	}
	return nil
}

func (c *client) release(s *backend.Server) { c.loop.Call(func() { s.Release(false) }) }

func (c *client) refusal() error {
	c.r.t.Helper()
	select {
	case <-c.granted:
		c.r.t.Fatalf("client %d gets a server", c.id)
	case err := <-c.refused:
		return err
	case <-time.After(10 * time.Second):
		c.r.t.Fatalf("client %d is told nothing", c.id)
	}
	return nil
}

func (r *rig) eventually(what string, ok func() bool) {
	r.t.Helper()
	for deadline := time.Now().Add(10 * time.Second); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			r.t.Fatalf("it does not come to pass that %s: %+v, %d connections", what, r.pool.Status(), r.fake.Open())
		}
	}
}

func TestAServerIsUsedAgainLastUsedFirst(t *testing.T) {
	r := newRig(t, 1, "default_pool_size = 3\nmin_pool_size = 0")
	a, b := r.client(1, 0), r.client(2, 0)
	a.acquire()
	b.acquire()
	first, second := a.server(), b.server()
	a.release(first)
	b.release(second)
	for range 3 {
		a.acquire()
		if s := a.server(); s != second {
			t.Error("not the server that was used last")
		}
		a.release(second)
	}
	if n := r.fake.Most(); n != 2 {
		t.Errorf("%d connections were made, want 2", n)
	}
}

func TestWaitersAreServedInTheirOrderAndThePoolNeverExceedsItsSize(t *testing.T) {
	r := newRig(t, 1, "default_pool_size = 2\nmin_pool_size = 0")
	var clients []*client
	for i := range 10 {
		c := r.client(uint64(i+1), 0)
		c.acquire()
		clients = append(clients, c)
	}
	for i, c := range clients {
		s := c.server()
		if i+2 < len(clients) {
			select {
			case <-clients[i+2].granted:
				t.Fatalf("client %d is served before a server was released", i+3)
			default:
			}
		}
		c.release(s)
	}
	if n := r.fake.Most(); n > 2 {
		t.Errorf("%d connections at the same time", n)
	}
}

func TestAWaiterThatLeavesTakesNothingWithIt(t *testing.T) {
	r := newRig(t, 1, "default_pool_size = 1\nmin_pool_size = 0")
	holder, leaver, stayer := r.client(1, 0), r.client(2, 0), r.client(3, 0)
	holder.acquire()
	s := holder.server()
	leaver.acquire()
	stayer.acquire()
	var left bool
	leaver.loop.Call(func() { left = r.pool.Leave(&leaver.waiter) })
	if !left {
		t.Error("the waiter was not in the queue")
	}
	holder.release(s)
	if stayer.server() != s {
		t.Error("another server")
	}
	stayer.loop.Call(func() { left = r.pool.Leave(&stayer.waiter) })
	if left {
		t.Error("a waiter that was served is still in the queue")
	}
	stayer.release(s)
}

func TestAServerGoesToAWaiterOnAnotherLoop(t *testing.T) {
	r := newRig(t, 2, "default_pool_size = 1\nmin_pool_size = 0\nworkers = 2")
	a, b := r.client(1, 0), r.client(2, 1)
	for range 20 {
		a.acquire()
		s := a.server()
		b.acquire() // waits
		a.release(s)
		if got := b.server(); got != s || got.Loop() != b.loop {
			t.Fatal("the server is not on the loop of who waited for it")
		}
		b.release(s) // idle on b's loop now; a has to fetch it
	}
	if n := r.fake.Most(); n != 1 {
		t.Errorf("%d connections were made", n)
	}
}

func TestAWaitEndsAtItsTimeout(t *testing.T) {
	r := newRig(t, 1, "default_pool_size = 1\nmin_pool_size = 0\ncheckout_timeout = 100")
	a, b := r.client(1, 0), r.client(2, 0)
	a.acquire()
	s := a.server()
	b.acquire()
	var timeout *pool.TimeoutError
	if err := b.refusal(); !errors.As(err, &timeout) || timeout.Size != 1 || timeout.Timeout != 100*time.Millisecond {
		t.Errorf("refused with %v", err)
	}
	a.release(s)
}

func TestWhatPostgresRefusesForGoodIsToldAtOnce(t *testing.T) {
	r := newRig(t, 1, "default_pool_size = 1\nmin_pool_size = 0\ncheckout_timeout = 60000")
	r.fake.Deny("28P01")
	a := r.client(1, 0)
	a.acquire()
	var said *backend.ServerError
	if err := a.refusal(); !errors.As(err, &said) || said.Code() != "28P01" {
		t.Errorf("refused with %v", err)
	}
}

func TestAPostgresThatIsStartingUpIsWaitedFor(t *testing.T) {
	r := newRig(t, 1, "default_pool_size = 1\nmin_pool_size = 0")
	r.fake.Deny("57P03")
	a := r.client(1, 0)
	a.acquire()
	r.eventually("a connection fails", func() bool { return r.fake.Most() > 0 && r.fake.Open() == 0 })
	r.fake.Deny("")
	a.release(a.server())
}

func TestTheLogSaysWhenPostgresIsThereForTheFirstTimeAndAgain(t *testing.T) {
	r := newRig(t, 1, "default_pool_size = 3\nmin_pool_size = 0")
	a, b, c := r.client(1, 0), r.client(2, 0), r.client(3, 0)
	const line = `msg="server connected"`

	a.acquire()
	a.server()
	b.acquire()
	b.server()
	if n := r.log.Count(line); n != 1 {
		t.Errorf("%d lines after two servers, want one of the first", n)
	}

	r.fake.Deny("57P03")
	c.acquire()
	r.eventually("a connection fails", func() bool { return r.log.Count("server connection failed") > 0 })
	r.fake.Deny("")
	c.server()
	if n := r.log.Count(line); n != 2 {
		t.Errorf("%d lines after it did not answer for a while, want one more", n)
	}
}

func TestTheMinimumIsKeptAndTheRestGoesWhenIdle(t *testing.T) {
	r := newRig(t, 1, "default_pool_size = 5\nmin_pool_size = 2\nidle_timeout = 50")
	r.eventually("two servers are there", func() bool { return r.pool.Status().Idle == 2 })
	var clients []*client
	var servers []*backend.Server
	for i := range 5 {
		c := r.client(uint64(i+1), 0)
		c.acquire()
		clients = append(clients, c)
		servers = append(servers, c.server())
	}
	for i, c := range clients {
		c.release(servers[i])
	}
	r.eventually("two servers are left", func() bool { return r.pool.Status().Total == 2 && r.fake.Open() == 2 })
	r.fake.Kill()
	r.eventually("the minimum is there again", func() bool { return r.pool.Status().Idle == 2 && r.fake.Open() == 2 })
}

func TestAnOldServerIsReplaced(t *testing.T) {
	r := newRig(t, 1, "default_pool_size = 1\nmin_pool_size = 0\nserver_lifetime = 50")
	a := r.client(1, 0)
	a.acquire()
	first := a.server()
	time.Sleep(60 * time.Millisecond) // its life
	a.release(first)
	a.acquire()
	second := a.server()
	if first == second {
		t.Error("a server that is too old is used again")
	}
	a.release(second)
	if n := r.fake.Most(); n != 1 {
		t.Errorf("%d connections at the same time", n)
	}
}

func TestAReloadChangesThePoolAndKeepsItsServers(t *testing.T) {
	r := newRig(t, 1, "default_pool_size = 1\nmin_pool_size = 1")
	r.eventually("a server is there", func() bool { return r.pool.Status().Idle == 1 })
	r.registry.Update(load(t, r.fake.Port(), "default_pool_size = 2\nmin_pool_size = 1"))
	if r.registry.Find("u", "d") != r.pool {
		t.Fatal("the pool is another one")
	}
	a, b := r.client(1, 0), r.client(2, 0)
	a.acquire()
	b.acquire()
	s1, s2 := a.server(), b.server()
	a.release(s1)
	b.release(s2)
	r.registry.Update(load(t, r.fake.Port()+1, "")) // another address: another pool
	if r.registry.Find("u", "d") == r.pool {
		t.Fatal("the pool is the same")
	}
	a.acquire()
	if err := a.refusal(); !errors.Is(err, pool.ErrRetired) {
		t.Errorf("refused with %v", err)
	}
	r.eventually("its servers are closed", func() bool { return r.fake.Open() == 0 })
}

func TestServersOfTheSameConnectionAttemptsAreBounded(t *testing.T) {
	r := newRig(t, 1, "default_pool_size = 60\nmin_pool_size = 0\ncheckout_timeout = 60000")
	r.fake.Hold(true)
	var clients []*client
	for i := range 60 {
		c := r.client(uint64(i+1), 0)
		c.acquire()
		clients = append(clients, c)
	}
	r.eventually("some connections are being made", func() bool { return r.fake.Open() == 16 })
	r.fake.Hold(false)
	var servers []*backend.Server
	for _, c := range clients {
		servers = append(servers, c.server())
	}
	for i, c := range clients {
		c.release(servers[i])
	}
	if n := r.fake.Most(); n != 60 {
		t.Errorf("%d connections were made, want 60", n)
	}
}
