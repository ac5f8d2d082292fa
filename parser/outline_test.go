package parser

import (
	"math/rand/v2"
	"testing"
)

// sameOutline holds an outline to what the scanner makes of a text, and says whether there is one.
func sameOutline(t *testing.T, sql []byte) bool {
	t.Helper()
	var dst [memoText]byte
	n, plain := outline(sql, &dst)
	if !plain {
		return false
	}
	f, key, hint := scan(sql, nil, false)
	if string(key) != string(dst[:n]) || f.doubtful || hint != noRole {
		t.Errorf("the outline of %q is %q, want %q (doubtful: %v, hint: %d)", sql, dst[:n], key, f.doubtful, hint)
	}
	return true
}

// TestAnOutlineIsWhatTheScannerMakesOfAText puts texts together of pieces that do something
// together.
func TestAnOutlineIsWhatTheScannerMakesOfAText(t *testing.T) {
	for _, c := range verdicts {
		sameOutline(t, []byte(c.sql))
	}
	for _, s := range shapes {
		sameOutline(t, []byte(s.text(5)))
	}
	pieces := []string{
		" ", " ", "  ", "\n", "a", "E", "u", "x", "select", "e1", "_", "é", "0", "17", "3.", ".5", ".", "..", "0x1f", "1e5", "1_000",
		"'", "''", "'a'", "'it''s'", `'\'`, `\`, `"`, `"a b"`, `""`, "$", "$1", "$a$", "$$", "-", "--", "/", "*", "/*", "*/", "&", "+", "=", "::", "(", ")",
		",", ";", "\x00", "\xff", "[", "]", "?", "{", "\v", "-- pgdog_role: primary\n",
	}
	r := rand.New(rand.NewPCG(1, 2))
	plain := 0
	for range 300_000 {
		var sql []byte
		for range 1 + r.IntN(8) {
			sql = append(sql, pieces[r.IntN(len(pieces))]...)
		}
		if sameOutline(t, sql) {
			plain++
		}
		if t.Failed() {
			return
		}
	}
	if plain < 30_000 {
		t.Errorf("only %d texts have an outline", plain)
	}
}

func TestCommonTextsHaveAnOutline(t *testing.T) {
	for _, sql := range []string{
		"SELECT 1", "SELECT a, b FROM t WHERE a = $1 AND b = 'some text' FOR UPDATE", `INSERT INTO "t" ("a") VALUES (1, -2.5, 'x''y') RETURNING "t"."a"`,
		"UPDATE t SET a = a + 1\n\tWHERE b <> ''::text;", "SELECT count(*) FROM a.b ",
	} {
		if !sameOutline(t, []byte(sql)) {
			t.Errorf("%q has none", sql)
		}
	}
}
