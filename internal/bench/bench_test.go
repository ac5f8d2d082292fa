package main

import (
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/pgebb/pgebb/internal/testpg"
)

func TestMain(m *testing.M) { testpg.Main(m) }

// shortest is a benchmark that says little and is soon done.
func shortest(t *testing.T, only ...string) options {
	t.Helper()
	return options{rounds: 1, seconds: 1, transactions: 100, clients: 20, only: only, json: filepath.Join(t.TempDir(), "figures.json")}
}

// figures runs a benchmark and returns what it prints, and the figures it writes by
// scenario and system.
func figures(t *testing.T, o options) (string, map[string]map[string][]sample) {
	t.Helper()
	var out strings.Builder
	if err := bench(o, &out, io.Discard); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(o.json)
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Scenarios map[string]struct{ Rounds map[string][]sample }
	}
	if err := json.Unmarshal(text, &file); err != nil {
		t.Fatal(err)
	}
	found := map[string]map[string][]sample{}
	for name, sc := range file.Scenarios {
		found[name] = sc.Rounds
	}
	return out.String(), found
}

// mustHave fails unless each system has one sample with exactly these figures, all
// greater than 0 but those of memory, which may not grow at all.
func mustHave(t *testing.T, found map[string][]sample, want map[string]string) {
	t.Helper()
	if len(found) != len(want) {
		t.Errorf("there are figures of %d systems, want %d", len(found), len(want))
	}
	for system, keys := range want {
		if len(found[system]) != 1 {
			t.Errorf("%s has %d samples, want 1", system, len(found[system]))
			continue
		}
		var got []string
		for key, x := range found[system][0] {
			got = append(got, key)
			if x <= 0 && key != "rss_b" {
				t.Errorf("%s of %s is %v", key, system, x)
			}
		}
		slices.Sort(got)
		if strings.Join(got, " ") != keys {
			t.Errorf("%s has %q, want %q", system, got, keys)
		}
	}
}

func TestItComparesWhatItStartsItself(t *testing.T) {
	o := shortest(t, "simple", "idle")
	o.binary = testpg.Binary(t)
	out, found := figures(t, o)
	simple := map[string]string{"pgebb": "cpu_us switches tps", "postgres": "tps"}
	idle := map[string]string{"pgebb": "before_mb clients rss_b"}
	if _, ok := found["simple"]["pgbouncer"]; ok { // it is installed
		simple["pgbouncer"], idle["pgbouncer"] = simple["pgebb"], idle["pgebb"]
	} else if !strings.Contains(out, "There is no pgbouncer on the PATH") {
		t.Errorf("it does not say that there is no pgbouncer:\n%s", out)
	}
	mustHave(t, found["simple"], simple)
	mustHave(t, found["idle"], idle)
	for _, want := range []string{"\n| CPU per transaction | ", "\n| RSS per client | ", "\nMeasured on "} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is not in\n%s", want, out)
		}
	}
}

func TestItMeasuresWhatRunsAlready(t *testing.T) {
	pg := testpg.ForTest(t)
	db := pg.Database(t)
	p := testpg.Pgebb(t, pg.Options(db, "transaction", poolSize))
	o := shortest(t, "extended", "results", "logins")
	o.user, o.password, o.database = db, db, db
	if err := o.addServer(p.Address()); err != nil {
		t.Fatal(err)
	}
	known := o
	known.servers = []*system{{name: "known", host: p.Host, port: p.Port, pid: p.PID()}}
	_, found := figures(t, known)
	mustHave(t, found["extended"], map[string]string{"known": "cpu_us switches tps"})
	mustHave(t, found["results"], map[string]string{"known": "cpu_ms mb_per_s"})
	mustHave(t, found["logins"], map[string]string{"known": "cpu_us per_s"})

	o.only = []string{"extended", "idle"}
	_, found = figures(t, o)
	mustHave(t, found["extended"], map[string]string{p.Address(): "tps"})
	mustHave(t, found["idle"], map[string]string{p.Address(): ""})
}

func TestAFailureNamesTheScenarioAndTheSystem(t *testing.T) {
	pg := testpg.ForTest(t)
	db := pg.Database(t)
	p := testpg.Pgebb(t, pg.Options(db, "transaction", poolSize))
	for _, name := range []string{"simple", "results", "idle", "logins"} {
		o := shortest(t, name)
		o.user, o.password, o.database = db, "wrong", db
		o.servers = []*system{{name: "that one", host: p.Host, port: p.Port, pid: p.PID()}}
		err := bench(o, io.Discard, io.Discard)
		if err == nil || !strings.HasPrefix(err.Error(), name+": that one: ") || !strings.Contains(err.Error(), "password") {
			t.Errorf("%s with a wrong password: %v", name, err)
		}
	}
}

func TestWhatWasFoundBeforeAFailureIsKept(t *testing.T) {
	pg := testpg.ForTest(t)
	db := pg.Database(t)
	p := testpg.Pgebb(t, pg.Options(db, "transaction", poolSize))
	o := shortest(t, "logins", "idle") // idle comes first
	o.user, o.password, o.database = db, db, db
	o.servers = []*system{{name: "pgebb", host: p.Host, port: p.Port, pid: p.PID()}}
	full := slices.Clone(scenarios)
	t.Cleanup(func() { scenarios = full })
	scenarios = slices.Clone(scenarios)
	last := &scenarios[slices.IndexFunc(scenarios, func(sc scenario) bool { return sc.name == "logins" })]
	last.measure = func(*rig, *system) (sample, error) { return nil, errors.New("broken") }
	var out strings.Builder
	if err := bench(o, &out, io.Discard); err == nil || err.Error() != last.name+": pgebb: broken" {
		t.Errorf("the error is %v", err)
	}
	for _, want := range []string{"| RSS per client |", "Measured on "} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is not in\n%s", want, &out)
		}
	}
	if text, err := os.ReadFile(o.json); err != nil || !strings.Contains(string(text), `"rss_b"`) {
		t.Errorf("the file has %s, %v", text, err)
	}
}

func TestTheMachineIsDescribed(t *testing.T) {
	found := machine(&rig{})
	if found.Cores < 1 || found.Processor == "" || found.HugePages == "" || found.LoadBefore == "" || !strings.HasPrefix(found.Go, "go") || found.Date.IsZero() {
		t.Errorf("%+v", found)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if version, _ := built(self); !strings.Contains(version, "go1.") {
		t.Errorf("this test was built %q", version)
	}
	if version, _ := built(os.DevNull); version != "of unknown origin" {
		t.Errorf("nothing was built %q", version)
	}
}

func TestPgBouncerCarriesStatementsFrom121On(t *testing.T) {
	for version, want := range map[string]bool{
		"PgBouncer 1.18.0\nlibevent 2.1.12": false, "PgBouncer 1.21.0": true, "PgBouncer 1.25.2": true, "PgBouncer 2.0": true, "": false,
	} {
		if got := carriesStatements(version); got != want {
			t.Errorf("%q: %v", version, got)
		}
	}
}
