package parser

import (
	"fmt"
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
