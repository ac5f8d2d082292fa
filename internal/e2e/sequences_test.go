package e2e

import (
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pgebb/pgebb/frontend/frontendtest"
	"github.com/pgebb/pgebb/internal/testpg"
)

var (
	sequenceSteps   = flag.Int("sequences.steps", 40, "how many sequences TestSequences plays in each of its ways")
	sequenceShorten = flag.Duration("sequences.shorten", time.Minute, "for how long TestSequences tries to make shorter what goes wrong")
	sequenceSeed    = flag.Uint64("sequences.seed", 1, "seed of the first sequence of TestSequences; 0 for one at random")
)

// inherent reports whether an answer differs from Postgres's for a reason that transaction
// pooling has; it is an error then.
func inherent(got, want string) bool {
	// An unnamed statement is not kept for ever.
	return strings.Contains(got, `M="unnamed prepared statement does not exist"`) && strings.HasSuffix(got, ourOwn) ||
		// A server that lacks a statement cannot get it in a transaction that has failed.
		strings.Contains(got, `C="25P02"`) && (strings.HasPrefix(want, "ParameterDescription") || strings.HasPrefix(want, "ErrorResponse"))
}

// roundsOfASequence is how many times a client of a sequence says something.
const roundsOfASequence = 25

// TestSequences makes up what several clients say, has them say it to Postgres itself and
// then, all at once, to pgebb, and compares what they are told. At times one leaves in the
// middle of something.
func TestSequences(t *testing.T) {
	pg := testpg.ForTest(t)
	database := pg.Database(t)
	tables := []string{"seq_a", "seq_b", "seq_c"}
	pg.Exec(t, database, fmt.Sprintf("ALTER ROLE %s SET statement_timeout = '30s'", database))
	for _, table := range tables {
		pg.Exec(t, database,
			fmt.Sprintf("CREATE TABLE %s (i int)", table),
			fmt.Sprintf("CREATE TABLE %s_later (i int UNIQUE DEFERRABLE INITIALLY DEFERRED)", table),
			fmt.Sprintf("ALTER TABLE %s OWNER TO %s", table, database),
			fmt.Sprintf("ALTER TABLE %s_later OWNER TO %s", table, database))
	}
	seed := *sequenceSeed
	if seed == 0 {
		seed = uint64(time.Now().UnixNano())
	}
	for _, way := range []struct {
		name, mode, general string
		size                int
	}{
		{"one-server", "transaction", "prepared_statements_limit = 2\n", 1},
		{"two-servers", "transaction", "prepared_statements_limit = 2\nworkers = 2\n", 2},
		{"full", "transaction", "prepared_statements = \"full\"\nprepared_statements_limit = 2\n", 2},
		{"session", "session", "", 3},
	} {
		t.Run(way.name, func(t *testing.T) {
			o := pg.Options(database, way.mode, way.size)
			o.General += way.general + "auth_type = \"trust\"\nlog_level = \"error\"\ncheckout_timeout = 60000\n"
			s := sequences{t: t, pg: pg, o: o, p: testpg.Pgebb(t, o), database: database, tables: tables, full: way.name == "full" || way.mode == "session"}
			for i := range *sequenceSteps {
				if problem := s.play(seed + uint64(i)); problem != "" {
					t.Fatalf("-sequences.seed %d: %s", seed+uint64(i), problem)
				}
			}
			epilogue(t, pg, s.p, database, way.size)
		})
	}
}

// sequences is where sequences are played.
type sequences struct {
	t        *testing.T
	pg       *testpg.Server
	o        testpg.Options
	p        *testpg.Process
	database string
	tables   []string // one for each client
	full     bool
	sign     string // what went wrong, to tell whether that is the same
}

func first(told []string) string {
	if len(told) == 0 {
		return "nothing"
	}
	return told[0]
}

// play plays the sequence with a seed, and says what is not as it ought to be.
func (s *sequences) play(seed uint64) string {
	r := rand.New(rand.NewPCG(seed, 1))
	programs := make([]life, 1+r.IntN(len(s.tables)))
	for i := range programs {
		g := generator{Rand: r, table: s.tables[i], full: s.full}
		programs[i] = g.program(roundsOfASequence)
		if r.IntN(4) == 0 { // it leaves in the middle
			programs[i] = programs[i][:1+r.IntN(len(programs[i]))]
		}
	}
	problem, err := s.compare(programs, seed)
	if err != nil {
		return err.Error()
	}
	if problem == "" {
		return ""
	}
	s.t.Logf("seed %d: %s", seed, problem)
	return problem + "\nall of it, shorter:\n" + s.shorten(programs, seed)
}

// compare plays programs to both, each client on its own, and shows the first that is told
// something else. The error is that they cannot be played with Postgres itself.
func (s *sequences) compare(programs []life, seed uint64) (problem string, err error) {
	straight := frontendtest.Login{
		Network: "unix", Address: fmt.Sprintf("%s/.s.PGSQL.%d", s.pg.Dir, s.pg.Port), User: s.database, Password: s.database, Database: s.database,
	}
	want, err := s.playAll(programs, straight, seed)
	if err != nil {
		return "", fmt.Errorf("with Postgres itself: %w", err)
	}
	got, err := s.playAll(programs, through(s.p, s.database), seed)
	if problem := s.settled(); problem != "" {
		for i, prog := range programs {
			problem += "\n" + prog.Script(string(rune('A'+i)), got[i])
		}
		return problem, nil
	}
	for i, prog := range programs {
		if slices.EqualFunc(got[i], want[i], alike) {
			continue
		}
		n := 0
		for n < len(got[i]) && n < len(want[i]) && alike(got[i][n], want[i][n]) {
			n++
		}
		if n < len(got[i]) && n < len(want[i]) && inherent(got[i][n], want[i][n]) {
			continue // and whatever follows is another story
		}
		s.sign = fmt.Sprint(first(got[i][n:]), first(want[i][n:]))
		return fmt.Sprintf("client %d is told, from message %d on,\n%s\ninstead of\n%s\nin\n%s(%v)", i, n,
			lines(got[i][n:]), lines(want[i][n:]), prog.Script(string(rune('A'+i)), nil), err), nil
	}
	if err != nil {
		return fmt.Sprintf("with pgebb: %v", err), nil
	}
	return "", nil
}

// settled waits until nothing is left of clients that have left in the middle.
func (s *sequences) settled() (problem string) {
	for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		if problem = poolBusy(s.t, s.p, s.database); problem == "" {
			return ""
		}
	}
	return problem
}

func lines(told []string) (s string) {
	for _, t := range told[:min(len(told), 12)] {
		s += "  " + t + "\n"
	}
	return s
}

// playAll plays programs at the same time, each with tables that are empty.
func (s *sequences) playAll(programs []life, l frontendtest.Login, seed uint64) (told [][]string, err error) {
	told = make([][]string, len(programs))
	errs := make([]error, len(programs))
	var wg sync.WaitGroup
	for i, prog := range programs {
		wg.Go(func() {
			c, err := frontendtest.Connect(l)
			if err != nil {
				errs[i] = err
				return
			}
			defer c.Close()
			c.Patience = 8 * time.Second
			if _, err := c.Query(fmt.Sprintf("TRUNCATE %s, %[1]s_later", s.tables[i])); err != nil {
				errs[i] = err
				return
			}
			p := player{c: c, r: rand.New(rand.NewPCG(seed, uint64(i)+2))}
			if err := p.play(prog); err != nil {
				errs[i] = fmt.Errorf("client %d: %w", i, err)
			}
			told[i] = p.told
		})
	}
	wg.Wait()
	return told, errors.Join(errs...)
}

// shorten leaves out whole clients, rounds and messages as long as the rest goes wrong, and
// returns what is left.
func (s *sequences) shorten(programs []life, seed uint64) string {
	deadline := time.Now().Add(*sequenceShorten)
	sign := s.sign
	s.p = testpg.Pgebb(s.t, s.o)
	problem := ""
	try := func(shorter []life) bool {
		if time.Now().After(deadline) {
			return false
		}
		p, err := s.compare(shorter, seed)
		if err != nil || p != "" {
			s.p = testpg.Pgebb(s.t, s.o) // the other may hang
		}
		if p != "" && err == nil && s.sign == sign {
			programs, problem = shorter, p
			return true
		}
		return false
	}
	for i := 0; i < len(programs) && len(programs) > 1; {
		if !try(slices.Delete(slices.Clone(programs), i, i+1)) {
			i++
		}
	}
	for i := range programs {
		for n := len(programs[i]) / 2; n > 0; n /= 2 {
			for at := 0; at+n <= len(programs[i]); {
				shorter := slices.Clone(programs)
				shorter[i] = slices.Delete(slices.Clone(programs[i]), at, at+n)
				if !try(shorter) {
					at += n
				}
			}
		}
		for at := range programs[i] {
			for j := 0; j < len(programs[i][at].messages); {
				shorter := slices.Clone(programs)
				shorter[i] = slices.Clone(programs[i])
				shorter[i][at].messages = slices.Delete(slices.Clone(programs[i][at].messages), j, j+1)
				if !try(shorter) {
					j++
				}
			}
		}
	}
	if problem == "" {
		return "(it does not go wrong each time)"
	}
	return problem
}
