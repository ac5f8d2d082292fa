package e2e

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/pgebb/pgebb/frontend/frontendtest"
	"github.com/pgebb/pgebb/internal/testpg"
)

var update = flag.Bool("update", false, "record the transcripts anew, from Postgres")

// TestTranscripts plays every transcript with Postgres itself and through pgebb; the
// answers must be the same, however the client's bytes are cut into pieces.
func TestTranscripts(t *testing.T) {
	pg := testpg.ForTest(t)
	database := pg.Database(t)
	scripts := readScripts(t)
	for _, s := range scripts {
		t.Run("direct/"+name(s), func(t *testing.T) { record(t, pg, database, s) })
	}
	for _, v := range []struct {
		name, mode, general string
		step                int // from one byte to cut at to the next
	}{
		{"transaction", "transaction", "", 1},
		{"few-statements", "transaction", "prepared_statements_limit = 2\n", 7}, // so that servers drop and parse all the time
		{"full", "transaction", "prepared_statements = \"full\"\nprepared_statements_limit = 2\n", 7},
		{"session", "session", "", 1},
	} {
		mode := v.mode
		holds := func(s *frontendtest.Script) bool { return s.In(mode) || s.In(v.name) }
		for _, size := range []int{1, 2, 3} {
			t.Run(fmt.Sprintf("%s/%d", v.name, size), func(t *testing.T) {
				o := pg.Options(database, mode, size)
				o.General += v.general
				p := testpg.Pgebb(t, o)
				for _, s := range scripts {
					if holds(s) && poolSize(s, mode) == size {
						t.Run(name(s), func(t *testing.T) { compare(t, pg, p, database, s, size, v.step) })
					}
				}
			})
		}
	}
}

// poolSize is what a transcript needs in a mode: in session mode a server for each of
// its clients.
func poolSize(s *frontendtest.Script, mode string) int {
	if mode == "session" {
		return max(s.Pool, s.Clients())
	}
	return s.Pool
}

func name(s *frontendtest.Script) string {
	return strings.TrimSuffix(filepath.Base(s.Name), ".txt")
}

func readScripts(t *testing.T) []*frontendtest.Script {
	t.Helper()
	paths, err := filepath.Glob("testdata/wire/*.txt")
	if err != nil || len(paths) == 0 {
		t.Fatalf("there are no transcripts: %v", err)
	}
	var scripts []*frontendtest.Script
	for _, path := range paths {
		s, err := frontendtest.ReadScript(path)
		if err != nil {
			t.Fatal(err)
		}
		scripts = append(scripts, s)
	}
	return scripts
}

func setUp(t *testing.T, pg *testpg.Server, database string, s *frontendtest.Script) {
	t.Helper()
	c, err := frontendtest.Connect(direct(pg, database))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	query(t, c, "SET client_min_messages = error")
	for _, sql := range s.Setup {
		query(t, c, sql)
	}
}

// record holds the transcript to Postgres, or writes it.
func record(t *testing.T, pg *testpg.Server, database string, s *frontendtest.Script) {
	setUp(t, pg, database, s)
	told, _, err := s.Run(direct(pg, database), nil)
	if err != nil {
		t.Fatal(err)
	}
	got := strings.ReplaceAll(s.Record(told), database, "DATABASE")
	if *update {
		if err := os.WriteFile(s.Name, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(s.Name)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("Postgres says\n%s\nrecorded is\n%s", got, want)
	}
}

// compare plays a transcript directly and through pgebb.
func compare(t *testing.T, pg *testpg.Server, p *testpg.Process, database string, s *frontendtest.Script, size, step int) {
	setUp(t, pg, database, s)
	want, sent, err := s.Run(direct(pg, database), nil)
	if err != nil {
		t.Fatal(err)
	}
	play := func(how string, prepare func(*frontendtest.Client)) {
		t.Helper()
		setUp(t, pg, database, s)
		got, _, err := s.Run(through(p, database), prepare)
		if err != nil {
			t.Fatalf("%s: %v\nso far:\n%s", how, err, s.Record(got))
		}
		if !reflect.DeepEqual(got, want) {
			t.Fatalf("%s: pgebb says\n%s\nPostgres says\n%s", how, s.Record(got), s.Record(want))
		}
	}
	play("in one piece", nil)
	if sent < 100_000 {
		play("in single bytes", func(c *frontendtest.Client) { c.Chunk = 1 })
	} else {
		play("in pieces", func(c *frontendtest.Client) { c.Chunk = 4093 })
	}
	if s.Split {
		for cut := 1; cut < sent; cut += step {
			login := true
			play(fmt.Sprintf("cut at byte %d", cut), func(c *frontendtest.Client) {
				if login {
					c.CutAfterLogin(cut)
					login = false
				}
			})
		}
	}
	epilogue(t, pg, p, database, size)
}
