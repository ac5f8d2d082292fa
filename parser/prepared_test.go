package parser

import (
	"strings"
	"testing"
)

func TestPreparedFindsTheNameAndTheEnd(t *testing.T) {
	for _, c := range []struct {
		sql        string
		prepares   bool
		name, tail string // empty if it is neither
		alone      bool
	}{
		{"PREPARE a AS SELECT 1", true, "a", " AS SELECT 1", true},
		{"prepare A(int, text) as select $1;", true, "a", "(int, text) as select $1", true},
		{`PREPARE "A ""b" AS SELECT 1; SELECT 2`, true, `A "b`, " AS SELECT 1", false},
		{"/* x */ PREPARE -- y\n a AS SELECT ';', E'\\';', \"a;\" ; SELECT 2", true, "a", " AS SELECT ';', E'\\';', \"a;\" ", false},
		{"PREPARE a AS SELECT $$;$$, $x$ ; $$ $x$, $1;", true, "a", " AS SELECT $$;$$, $x$ ; $$ $x$, $1", true},
		{"PREPARE a AS SELECT 1 -- ;\n/* ; /* ; */ ; */;", true, "a", " AS SELECT 1 -- ;\n/* ; /* ; */ ; */", true},
		{"PREPARE a AS SELECT name'\\';", true, "a", " AS SELECT name'\\'", true},
		{"EXECUTE a", false, "a", "", true},
		{"execute a(1, 'x')", false, "a", "(1, 'x')", true},
		{"EXPLAIN EXECUTE a(1)", false, "a", "(1)", true},
		{"EXPLAIN ANALYZE VERBOSE EXECUTE a", false, "a", "", true},
		{"EXPLAIN (ANALYZE, COSTS off) EXECUTE a", false, "a", "", true},
		{"EXECUTE " + strings.Repeat("é", 40), false, strings.Repeat("é", 31), "", true},
		{"PREPARE TRANSACTION 'x'", false, "", "", false},
		{"PREPARE", false, "", "", false},
		{"PREPARED a AS SELECT 1", false, "", "", false},
		{"EXPLAIN SELECT 1", false, "", "", false},
		{"EXPLAIN (", false, "", "", false},
		{"SELECT 1; EXECUTE a", false, "", "", false},
		{"", false, "", "", false},
	} {
		p, ok := Scanner{}.Prepared([]byte(c.sql))
		if ok != (c.name != "") || p.Prepares != c.prepares || p.Name != c.name || c.sql[p.To:p.End] != c.tail || p.Alone != c.alone {
			t.Errorf("%q: %+v, rest %q", c.sql, p, c.sql[p.To:p.End])
		}
	}
}

func FuzzPrepared(f *testing.F) {
	for _, sql := range []string{"PREPARE a AS SELECT $$;$$;", "EXPLAIN (x) EXECUTE \"a\"", "PREPARE a AS SELECT E'\\", "EXECUTE a -- \n;"} {
		f.Add([]byte(sql))
	}
	f.Fuzz(func(t *testing.T, sql []byte) {
		p, ok := Scanner{}.Prepared(sql)
		if ok && (p.From < 0 || p.From >= p.To || p.To > p.End || p.End > len(sql) || len(p.Name) == 0 || len(p.Name) > 63) {
			t.Errorf("%q: %+v", sql, p)
		}
	})
}
