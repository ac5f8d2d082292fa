package pool_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pgebb/pgebb/backend"
	"github.com/pgebb/pgebb/backend/backendtest"
	"github.com/pgebb/pgebb/config"
	"github.com/pgebb/pgebb/internal/loop"
	"github.com/pgebb/pgebb/pool"
)

// fleet is a cluster of pools before fake servers.
type fleet struct {
	*rig     // its pool is the first one, and its fake that of the first host
	fakes    []*backendtest.Fake
	roles    []string
	registry *pool.Registry
	cluster  *pool.Cluster
	general  string
}

// newFleet starts it, with a host for each role. A role can be followed by other keys, one
// in a line.
func newFleet(t *testing.T, general string, roles ...string) *fleet {
	t.Helper()
	loops, err := loop.NewGroup(1, nil)
	if err != nil {
		t.Fatal(err)
	}
	f := &fleet{roles: roles, general: general}
	for _, role := range roles {
		fake, err := backendtest.Start()
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasPrefix(role, "auto") {
			fake.Be(len(f.fakes) > 0, 1, "0/100")
		}
		f.fakes = append(f.fakes, fake)
	}
	f.rig = &rig{t: t, fake: f.fakes[0], loops: loops}
	f.registry = pool.NewRegistry(loops, f.config(), backend.TCPOptions{}, slog.New(slog.DiscardHandler))
	f.rig.registry = f.registry
	f.rig.pool = f.pools()[0]
	f.cluster = f.rig.pool.Cluster()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		f.registry.Close(ctx)
		for _, fake := range f.fakes {
			fake.Stop()
		}
		loops.Stop()
	})
	return f
}

// config is the configuration for the roles that the fleet has.
func (f *fleet) config() *config.Config {
	text := "[general]\n" + f.general + "\n" // and what other tables there are
	for i, role := range f.roles {
		role, more, _ := strings.Cut(role, "\n")
		text += fmt.Sprintf("[[databases]]\nname = \"d\"\nhost = \"127.0.0.1\"\nport = %d\nrole = %q\n%s\n", f.fakes[i].Port(), role, more)
	}
	dir := f.rig.t.TempDir()
	for name, text := range map[string]string{"pgdog.toml": text, "users.toml": "[[users]]\nname = \"u\"\npassword = \"p\"\ndatabase = \"d\"\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			f.rig.t.Fatal(err)
		}
	}
	cfg, problems := config.Load(config.Source{ConfigPath: filepath.Join(dir, "pgdog.toml"), UsersPath: filepath.Join(dir, "users.toml")})
	if err := problems.Err(); err != nil {
		f.rig.t.Fatal(err)
	}
	return cfg
}

// pools are those of the hosts, in their order.
func (f *fleet) pools() []*pool.Pool { return f.registry.Pools() }

// index is the number of a pool's host, -1 for none of them.
func (f *fleet) index(p *pool.Pool) int { return slices.Index(f.pools(), p) }

// choose says how often each host is chosen in n requests.
func (f *fleet) choose(need pool.Access, n int) []int {
	counts := make([]int, len(f.fakes))
	for range n {
		counts[f.index(f.cluster.Choose(need))]++
	}
	return counts
}

// client is one whose requests go where the cluster says.
func (f *fleet) client(id uint64, need pool.Access) *client {
	c := f.rig.client(id, 0)
	c.waiter.Elsewhere = need != pool.Write
	return c
}

// acquire asks for a server of the pool that the cluster chooses, again when told so.
func (f *fleet) acquire(c *client, need pool.Access) (*pool.Pool, *backend.Server) {
	f.rig.t.Helper()
	for range 100 {
		p := f.cluster.Choose(need)
		c.loop.Call(func() {
			s, err := p.Acquire(&c.waiter)
			if err != nil {
				c.refused <- err
			} else if s != nil {
				c.Granted(s)
			}
		})
		select {
		case s := <-c.granted:
			return p, s
		case err := <-c.refused:
			if !errors.Is(err, pool.ErrMoved) {
				f.rig.t.Fatalf("client %d is refused: %v", c.id, err)
			}
		case <-time.After(10 * time.Second):
			f.rig.t.Fatalf("client %d gets nothing", c.id)
		}
	}
	f.rig.t.Fatalf("client %d is sent to and fro", c.id)
	return nil, nil
}

func TestWritesGoToThePrimaryAndReadsWhereTheConfigurationSays(t *testing.T) {
	for split, want := range map[string][]bool{
		"include_primary":                   {true, true, true},
		"exclude_primary":                   {false, true, true},
		"include_primary_if_replica_banned": {false, true, true},
		"prefer_primary":                    {true, false, false},
	} {
		t.Run(split, func(t *testing.T) {
			f := newFleet(t, "read_write_split = '"+split+"'", "primary", "replica", "replica")
			if got := f.choose(pool.Write, 50); got[0] != 50 {
				t.Errorf("writes go to %v", got)
			}
			got := f.choose(pool.Read, 200)
			for i, n := range got {
				if n > 0 != want[i] {
					t.Errorf("reads go to %v", got)
				}
			}
			if got := f.choose(pool.Replica, 50); got[0] != 0 {
				t.Errorf("who asks for a replica goes to %v", got)
			}
		})
	}
}

func TestReadsAreBalanced(t *testing.T) {
	for strategy, want := range map[string][]int{
		"round_robin":              {40, 40, 40},
		"weighted_round_robin":     {20, 40, 60},
		"least_active_connections": {40, 40, 40}, // none is in use
	} {
		t.Run(strategy, func(t *testing.T) {
			f := newFleet(t, "load_balancing_strategy = '"+strategy+"'", "primary\nlb_weight = 1", "replica\nlb_weight = 2", "replica\nlb_weight = 3")
			if got := f.choose(pool.Read, 120); !slices.Equal(got, want) {
				t.Errorf("reads go to %v, want %v", got, want)
			}
		})
	}
	t.Run("random", func(t *testing.T) {
		f := newFleet(t, "", "primary", "replica")
		if got := f.choose(pool.Read, 1000); got[0] < 300 || got[1] < 300 {
			t.Errorf("reads go to %v", got)
		}
	})
}

func TestTheHostWithTheFewestServersInUseGetsTheNextRead(t *testing.T) {
	f := newFleet(t, "load_balancing_strategy = 'least_active_connections'", "primary", "replica")
	a := f.client(1, pool.Read)
	p, s := f.acquire(a, pool.Read)
	for _, other := range f.pools() {
		// A host's first connection is also used to find out what it is.
		for deadline := time.Now().Add(10 * time.Second); other != p && other.Status().Idle != other.Status().Total; {
			if time.Now().After(deadline) {
				t.Fatal("the other host is in use for ever")
			}
			runtime.Gosched()
		}
	}
	for range 10 {
		if other := f.cluster.Choose(pool.Read); other == p {
			t.Fatal("the host in use is chosen, and the other is not in use")
		}
	}
	a.release(s)
}

func TestWithoutAPrimaryEverythingGoesToReplicas(t *testing.T) {
	f := newFleet(t, "", "replica", "replica")
	if got := f.choose(pool.Write, 200); got[0] == 0 || got[1] == 0 {
		t.Errorf("writes go to %v", got)
	}
}

func TestAReloadChangesTheHostsOfACluster(t *testing.T) {
	f := newFleet(t, "load_balancing_strategy = 'round_robin'", "primary", "replica", "replica")
	third := f.pools()[2]
	f.roles = f.roles[:2]
	f.registry.Update(f.config())
	if got := f.choose(pool.Read, 10); !slices.Equal(got, []int{5, 5, 0}) {
		t.Errorf("with a host less reads go to %v", got)
	}
	c := f.client(1, pool.Read)
	c.loop.Call(func() {
		if _, err := third.Acquire(&c.waiter); !errors.Is(err, pool.ErrRetired) {
			t.Errorf("the pool of the host that is gone says %v", err)
		}
	})
	f.roles = []string{"replica", "primary"}
	f.registry.Update(f.config())
	if got := f.choose(pool.Write, 10); !slices.Equal(got, []int{0, 10, 0}) {
		t.Errorf("after the roles were exchanged writes go to %v", got)
	}
	f.roles = f.roles[:1]
	f.registry.Update(f.config())
	if f.cluster.Split() || f.choose(pool.Write, 1)[0] != 1 {
		t.Error("a cluster of one host chooses another")
	}
}
