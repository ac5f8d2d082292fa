package parser

import (
	"fmt"
	"reflect"
	"testing"
	"time"

	"github.com/pgebb/pgebb/cache"
	"github.com/pgebb/pgebb/internal/verdict"
)

// asked returns a Judge that remembers a thousand texts.
func asked(t *testing.T) *Judge {
	t.Helper()
	j := NewJudge(Options{Limits: cache.TreeLimits{Idle: time.Hour}})
	for i := range 1000 {
		sql := fmt.Appendf(nil, "SELECT %d", i)
		for range 2 { // only what comes twice is remembered
			j.Judge(sql, verdict.Needs(0))
		}
	}
	if n := j.memos.bytes.Load(); n == 0 || n != counted(j) || n > MemoBytes {
		t.Fatalf("texts are said to take %d bytes, and take %d", n, counted(j))
	}
	return j
}

// counted is what texts take by a recount.
func counted(j *Judge) (sum int64) {
	for i := range j.memos.slots {
		sum += j.memos.slots[i].Load().cost()
	}
	return sum
}

func TestTextsAreForgottenWhenNobodyAsksForThem(t *testing.T) {
	j := asked(t)
	j.Sweep(memoIdle - 1)
	if j.memos.bytes.Load() == 0 {
		t.Error("texts are forgotten too soon")
	}
	j.Sweep(memoIdle)
	if n := j.memos.bytes.Load(); n != 0 || counted(j) != 0 {
		t.Errorf("%d bytes are left", n)
	}
}

func TestNothingIsKeptWhenMemoryIsShort(t *testing.T) {
	j := asked(t)
	j.Judge([]byte("WITH x AS (SELECT 1) SELECT * FROM x"), verdict.Needs(0xff))
	before := j.Cache().Stats()
	if before.Entries == 0 {
		t.Fatal("nothing is kept to begin with")
	}
	j.Shed()
	if n := j.Bytes(); n != 0 {
		t.Errorf("%d bytes are left", n)
	}
	if after := j.Cache().Stats(); after.Hits != before.Hits || after.Misses != before.Misses || after.Entries != 0 {
		t.Errorf("%+v became %+v", before, after)
	}
}

// TestATextIsJudgedByItsOutlineOnlyIfItsConstantsDoNotMatter asks for texts that differ in
// constants again and again, and compares with what a Judge says that has seen no other.
func TestATextIsJudgedByItsOutlineOnlyIfItsConstantsDoNotMatter(t *testing.T) {
	var texts []string
	for _, c := range verdicts {
		texts = append(texts, c.sql)
	}
	for i := range 5 {
		for _, format := range []string{
			"SET a.x = %d", "SET a.x = '%d'", "SELECT set_config('a.b%d', 'x', false)", "SELECT %d", "SELECT %d FOR UPDATE",
			"DO 'SELECT set_config(''a.b%d'', '''', false)'", "DO 'PERFORM %d'", "SELECT U&'%d'", `SELECT 'a%d\' FROM t`,
			"SELECT %d -- pgdog_role: replica", "SELECT '%d' FROM pg_settings",
		} {
			texts = append(texts, fmt.Sprintf(format, i))
		}
	}
	for _, needs := range []verdict.Needs{verdict.State | verdict.Locks, verdict.Tree | verdict.State, verdict.Routing} {
		want := map[string]verdict.Verdict{}
		for _, sql := range texts {
			want[sql] = newJudge().Judge([]byte(sql), needs)
		}
		j := newJudge()
		for range 4 {
			for _, sql := range texts {
				for range 2 { // only what comes twice is remembered
					if v := j.Judge([]byte(sql), needs); !reflect.DeepEqual(v, want[sql]) {
						t.Fatalf("Judge(%q, %d) = %+v, want %+v", sql, needs, v, want[sql])
					}
				}
			}
		}
	}
}

func TestTheCacheLearnsHowOftenAnOutlineWasAskedFor(t *testing.T) {
	j := newJudge()
	const n = 100
	for i := range n {
		j.Judge(fmt.Appendf(nil, "SELECT a FROM t WHERE b = %d", i), verdict.Tree)
	}
	if s := j.Cache().Stats(); s.Hits > n/10 {
		t.Errorf("%d of %d texts were looked for in the cache", s.Hits, n)
	}
	for range 2 { // the second time there is nothing to tell
		j.Settle()
		if s := j.Cache().Stats(); s.Hits != n-1 || s.Misses != 1 {
			t.Errorf("settled, %d hits and %d misses are counted, want %d and 1", s.Hits, s.Misses, n-1)
		}
	}
	if e := j.Cache().Entries(); len(e) != 1 || e[0].Hits != n-1 {
		t.Errorf("entries are %v", e)
	}
	j.Sweep(time.Second)
	j.Judge([]byte("SELECT a FROM t WHERE b = 0"), verdict.Tree)
	if s := j.Cache().Stats(); s.Hits != n || s.Misses != 1 {
		t.Errorf("%d hits and %d misses are counted, want %d and 1", s.Hits, s.Misses, n)
	}
}
