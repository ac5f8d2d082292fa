package parser

import (
	"strings"
	"testing"
	"unicode/utf8"

	libpgquery "github.com/pganalyze/pg_query_go/v6/parser"

	"github.com/pgebb/pgebb/internal/verdict"
)

// FuzzScan holds the scanner to the parser: it must never say less, where it says that it is
// sure it must say the same, and what it makes of a text for the parser must mean the same.
func FuzzScan(f *testing.F) {
	for _, c := range verdicts {
		f.Add(c.sql)
	}
	for _, s := range shapes {
		f.Add(s.text(3))
	}
	f.Fuzz(func(t *testing.T, sql string) {
		if strings.Contains(sql, "\x00") {
			return // no text has it
		}
		sameOutline(t, []byte(sql))
		said, key, _ := scan([]byte(sql), nil, false)
		if said.doubtful || said.tokens > maxTokens || said.depth > maxDepth() || len(sql) > maxText {
			return
		}
		tree, err := libpgquery.ParseToProtobuf(sql)
		if err != nil {
			return
		}
		r, err := read(tree)
		if err != nil && !utf8.ValidString(sql) {
			return // names in another encoding; the words decide
		}
		if err != nil {
			t.Fatal(err)
		}
		if missing := r.v.Flags &^ said.flags; missing != 0 {
			t.Errorf("the scanner does not see %s in %q", names(missing), sql)
		}
		if more := said.flags &^ r.v.Flags & verdict.Write; said.exactWrite && more != 0 {
			t.Errorf("the scanner is sure of %s in %q", names(more), sql)
		}
		if more := said.flags &^ r.v.Flags & verdict.Session; said.exactState && !r.body && more != 0 {
			t.Errorf("the scanner is sure of %s in %q", names(more), sql)
		}
		kept, verbatim, _ := scan([]byte(sql), nil, true)
		if kept.flags != said.flags {
			t.Errorf("%q is judged in two ways: %s and %s", sql, names(said.flags), names(kept.flags))
		}
		texts := []string{string(verbatim)}
		if !said.verbatim {
			texts = append(texts, string(key))
		}
		for _, text := range texts {
			other, err := libpgquery.ParseToProtobuf(text)
			if err != nil {
				t.Fatalf("the parser takes %q, but not %q: %v", sql, text, err)
			}
			if again, err := read(other); err != nil || again.v.Flags != r.v.Flags {
				t.Errorf("%q is %s, but %q is not: %v", sql, names(r.v.Flags), text, err)
			}
		}
	})
}

// FuzzJudge takes anything; there is a verdict for all of it, and the same the next time.
func FuzzJudge(f *testing.F) {
	for _, s := range shapes {
		f.Add([]byte(s.text(100)), byte(verdict.Tree))
	}
	j := newJudge()
	f.Fuzz(func(t *testing.T, sql []byte, needs byte) {
		j.Judge(sql, verdict.Needs(needs))
		j.Wait()
		v := j.Judge(sql, verdict.Needs(needs))
		if again := j.Judge(sql, verdict.Needs(needs)); again.Flags != v.Flags {
			t.Errorf("%s, then %s", names(v.Flags), names(again.Flags))
		}
	})
}
