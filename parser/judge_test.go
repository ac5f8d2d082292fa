package parser

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/pgebb/pgebb/cache"
	"github.com/pgebb/pgebb/internal/verdict"
)

func newJudge() *Judge {
	return NewJudge(Options{Limits: cache.TreeLimits{Bytes: 64 << 20}})
}

const (
	w   = verdict.Write
	set = verdict.Write | verdict.Settings
	un  = verdict.Unnamed
)

// verdicts are texts and what is to be known of them.
var verdicts = []struct {
	sql  string
	want verdict.Flags
}{
	{"", 0},
	{" ; ", 0},
	{"-- nothing", 0},
	{"SELECT 1", 0},
	{"select * from t where a = 'for update'", 0},
	{"(SELECT 1) UNION (SELECT 2)", 0},
	{"VALUES (1), (2)", 0},
	{"TABLE t", 0},
	{"WITH x AS (SELECT 1) SELECT * FROM x", 0},
	{"SELECT a AS update FROM t", 0},
	{`SELECT "insert" FROM t`, 0},
	{"SELECT share FROM holdings", 0},
	{"SELECT temp, hold FROM weather", 0},
	{"SELECT 1 FROM pg_settings", 0},
	{"SELECT * FROM t FOR UPDATE", w | verdict.Locking},
	{"SELECT * FROM t FOR NO KEY UPDATE SKIP LOCKED", w | verdict.Locking},
	{"SELECT * FROM t FOR SHARE", w | verdict.Locking},
	{"SELECT * FROM (SELECT * FROM t FOR KEY SHARE) x", w | verdict.Locking},
	{"WITH x AS (DELETE FROM t RETURNING a) SELECT * FROM x", w},
	{"WITH x AS (INSERT INTO t VALUES (1) RETURNING a) SELECT * FROM x", w},
	{"WITH x AS (UPDATE t SET a = 1 RETURNING a) SELECT * FROM x", w},
	{"SELECT * INTO u FROM t", w},
	{"SELECT * INTO TEMP u FROM t", w | verdict.Temp},
	{"INSERT INTO t VALUES (1)", w},
	{"INSERT INTO t (temp, hold) VALUES (1, 2)", w},
	{"UPDATE t SET a = 1", w},
	{"DELETE FROM t", w},
	{"MERGE INTO t USING u ON true WHEN MATCHED THEN DELETE", w},
	{"SELECT nextval('s')", w},
	{"SELECT pg_catalog.nextval('s')", w},
	{`SELECT "nextval"('s')`, w},
	{"SELECT setval('s', 1), currval('s'), lastval()", w},
	{"SELECT lo_create(1)", w},
	{"SELECT pg_notify('a', 'b')", w},
	{"EXPLAIN SELECT 1", 0},
	{"EXPLAIN ANALYZE SELECT nextval('s')", w},
	{"EXPLAIN ANALYZE INSERT INTO t VALUES (1)", w},
	{"EXPLAIN (FORMAT json) DELETE FROM t", w},
	{"SHOW search_path", w | verdict.Show},
	{"COPY t FROM STDIN", w | verdict.Copy},
	{"COPY (SELECT set_config('a.b', 'c', false)) TO STDOUT", set | verdict.Copy},

	{"BEGIN", verdict.Begin},
	{"begin work", verdict.Begin},
	{"START TRANSACTION ISOLATION LEVEL REPEATABLE READ", verdict.Begin},
	{"BEGIN READ ONLY", verdict.Begin | verdict.ReadOnly},
	{"BEGIN ISOLATION LEVEL SERIALIZABLE, READ ONLY, DEFERRABLE", verdict.Begin | verdict.ReadOnly},
	{"START TRANSACTION READ WRITE", verdict.Begin | verdict.ReadWrite},
	{"BEGIN ISOLATION LEVEL READ COMMITTED", verdict.Begin},
	{"COMMIT", verdict.End},
	{"END", verdict.End},
	{"ROLLBACK", verdict.End},
	{"ABORT", verdict.End},
	{"COMMIT AND CHAIN", verdict.End},
	{"PREPARE TRANSACTION 'x'", w | verdict.End},
	{"SAVEPOINT a", verdict.Savepoint},
	{"RELEASE a", verdict.Savepoint},
	{"ROLLBACK TO a", verdict.Savepoint},
	{"ROLLBACK TO SAVEPOINT a", verdict.Savepoint},
	{"SELECT 1; SELECT 2", verdict.Several},
	{"BEGIN; INSERT INTO t VALUES (1); COMMIT", w | verdict.Begin | verdict.End | verdict.Several},

	{"SET search_path = a, b", set},
	{"SET SESSION search_path TO a", set},
	{"SET LOCAL search_path = a", w},
	{"SET TIME ZONE 'UTC'", set},
	{"SET ROLE joe", set},
	{"SET SESSION AUTHORIZATION joe", set | verdict.Authorization},
	{"SET TRANSACTION ISOLATION LEVEL SERIALIZABLE", w},
	{"SET SESSION CHARACTERISTICS AS TRANSACTION READ ONLY", set},
	{"SET CONSTRAINTS ALL DEFERRED", w},
	{"RESET search_path", set},
	{"RESET ALL", set | un},
	{"RESET ROLE", set},
	{"SELECT set_config('search_path', 'a', false)", set},
	{"SELECT set_config('search_path', 'a', true)", w},
	{"SELECT set_config($1, $2, $3)", set | un},
	{"SELECT set_config('a.b', $1, $2)", set},
	{"UPDATE pg_settings SET setting = 'x' WHERE name = 'y'", set | un},
	{"SELECT pg_advisory_lock(1)", w | verdict.Lock},
	{"SELECT pg_try_advisory_lock_shared(1, 2)", w | verdict.Lock},
	{"SELECT pg_advisory_unlock_all()", w | verdict.Lock},
	{"SELECT pg_advisory_xact_lock(1)", w},
	{"CREATE TABLE t (a int)", w},
	{"CREATE TEMP TABLE t (a int)", w | verdict.Temp},
	{"CREATE LOCAL TEMPORARY TABLE t (a int)", w | verdict.Temp},
	{"CREATE TEMP TABLE t (a int) ON COMMIT DROP", w},
	{"CREATE TEMP TABLE t ON COMMIT DROP AS SELECT 1", w},
	{"CREATE TEMP VIEW v AS SELECT 1", w | verdict.Temp},
	{"CREATE TEMP SEQUENCE s", w | verdict.Temp},
	{"CREATE TABLE pg_temp.t (a int)", w | verdict.Temp},
	{"CREATE FUNCTION pg_temp.f() RETURNS int LANGUAGE sql AS 'SELECT 1'", w | verdict.Temp},
	{"DECLARE c CURSOR FOR SELECT 1", 0},
	{"DECLARE c CURSOR WITH HOLD FOR SELECT 1", w | verdict.Hold},
	{"LISTEN a", w | verdict.Listen},
	{"UNLISTEN *", w | verdict.Unlisten},
	{"NOTIFY a, 'b'", w | verdict.Notify},
	{"PREPARE p AS SELECT 1", w | verdict.Prepare},
	{"EXECUTE p(1)", w | verdict.Execute},
	{"DEALLOCATE p", w},
	{"DEALLOCATE ALL", w | verdict.Discard},
	{"DISCARD ALL", set | un | verdict.Discard | verdict.Unlisten | verdict.Lock},
	{"DISCARD TEMP", w},
	{"DO $$ BEGIN PERFORM 1; END $$", w},
	{"DO $$ BEGIN PERFORM pg_advisory_lock(1); END $$", w | verdict.Lock},
	{"DO 'BEGIN CREATE TEMP TABLE t (a int); END'", w | verdict.Temp},

	{"/* pgdog_role: replica */ SELECT 1", verdict.Replica},
	{"SELECT 1 -- pgdog_role = primary", verdict.Primary},
	{"/* pgdog_role: other */ SELECT 1", 0},
	{"SELECT '/* pgdog_role: replica */'", 0},
}

func TestVerdicts(t *testing.T) {
	for _, needs := range []verdict.Needs{verdict.State | verdict.Locks | verdict.Routing, verdict.Tree} {
		j := newJudge()
		for range 2 { // the second time from the cache
			for _, c := range verdicts {
				v := j.Judge([]byte(c.sql), needs)
				if v.Flags != c.want {
					t.Errorf("Judge(%q, %d) = %s, want %s", c.sql, needs, names(v.Flags), names(c.want))
				}
			}
		}
	}
}

// A verdict that is made of less may say more, but never less.
func TestWithoutNeedsAVerdictIsOnTheSafeSide(t *testing.T) {
	j := newJudge()
	for _, c := range verdicts {
		v := j.Judge([]byte(c.sql), 0)
		if missing := c.want &^ v.Flags; missing != 0 {
			t.Errorf("Judge(%q, 0) lacks %s", c.sql, names(missing))
		}
	}
	if n := j.Stats().Parses; n != 0 {
		t.Errorf("%d texts were parsed", n)
	}
}

func TestCommonStatementsAreNotParsed(t *testing.T) {
	j := newJudge()
	for _, sql := range []string{
		"SELECT a, b FROM t JOIN u USING (a) WHERE x = 'y' ORDER BY 1 LIMIT 10", "INSERT INTO t VALUES ($1, $2)", "UPDATE t SET a = $1",
		"DELETE FROM t WHERE a = $1", "BEGIN", "COMMIT", "ROLLBACK", "START TRANSACTION READ ONLY", "SAVEPOINT a", "SHOW x", "LISTEN a",
	} {
		j.Judge([]byte(sql), verdict.State|verdict.Locks|verdict.Routing)
		if n := j.Stats().Parses; n != 0 {
			t.Fatalf("%q was parsed", sql)
		}
	}
}

func TestSettings(t *testing.T) {
	j := newJudge()
	for sql, want := range map[string]verdict.Setting{
		"SET Search_Path = a, 'B'":                     {Name: "search_path", Value: `"a", "B"`, Known: true},
		"SET work_mem TO '4MB'":                        {Name: "work_mem", Value: "4MB", Known: true},
		"SET statement_timeout = 5000":                 {Name: "statement_timeout", Value: "5000", Known: true},
		"SET LOCAL my.app = x":                         {Name: "my.app", Value: "x", Known: true, Local: true},
		"SET x TO DEFAULT":                             {Name: "x", Reset: true},
		"RESET x":                                      {Name: "x", Reset: true},
		"SET x FROM CURRENT":                           {Name: "x"},
		"SET TIME ZONE 'UTC'":                          {Name: "timezone", Value: "UTC", Known: true},
		"SET ROLE joe":                                 {Name: "role", Value: "joe", Known: true},
		"SELECT set_config('A.b', 'c', 'off')":         {Name: "a.b", Value: "c", Known: true},
		"SELECT pg_catalog.set_config('a.b', $1, $2)":  {Name: "a.b"},
		"SET SESSION AUTHORIZATION DEFAULT":            {Name: "session_authorization", Reset: true},
		"SELECT set_config('x'::text, 'y'::text, 'f')": {Name: "x", Value: "y", Known: true},
	} {
		v := j.Judge([]byte(sql), verdict.State)
		if len(v.Settings) != 1 || v.Settings[0] != want {
			t.Errorf("Judge(%q) finds %+v, want %+v", sql, v.Settings, want)
		}
	}
}

func TestTextsThatCanBeReadInTwoWaysAreNotTrusted(t *testing.T) {
	j := newJudge()
	for _, sql := range []string{
		`SELECT 'a\' , set_config('x', 'y', false)`, `SELECT 'never closed`, `SELECT "never closed`, `SELECT $a$ never closed $b$`,
		"SELECT 1 /* never closed", `SELECT E'never closed\'`,
	} {
		v := j.Judge([]byte(sql), verdict.State|verdict.Routing|verdict.Tree)
		if v.Flags&verdict.Any != verdict.Any {
			t.Errorf("Judge(%q) = %s", sql, names(v.Flags))
		}
	}
}

func TestTextsThatDifferInConstantsOnlyShareAnEntry(t *testing.T) {
	j := newJudge()
	for _, sql := range []string{
		"SELECT * FROM t WHERE a = 1 AND b = 'x'",
		"SELECT * FROM t WHERE a = 23.5 AND b = 'y''z'",
		"SELECT  *\nFROM t /* id 17 */ WHERE a = 0x1f AND b = $tag$long$tag$",
		"SELECT * FROM t WHERE a = 1e-5 AND b = 'x'\n'y'",
	} {
		j.Judge([]byte(sql), verdict.Tree)
	}
	if s := j.Cache().Stats(); s.Entries != 1 || s.Hits != 3 {
		t.Errorf("%+v", s)
	}
	for _, sql := range []string{"SET a.x = 1", "SET a.x = 2", "SELECT set_config('a.y', 'b', false)", "SELECT set_config('a.z', 'b', false)"} {
		v := j.Judge([]byte(sql), verdict.State)
		if len(v.Settings) != 1 || !strings.Contains(sql, v.Settings[0].Name) {
			t.Errorf("Judge(%q) finds %+v", sql, v.Settings)
		}
	}
	if s := j.Cache().Stats(); s.Entries != 5 {
		t.Errorf("%+v", s)
	}
}

func TestALongParseIsDoneElsewhere(t *testing.T) {
	j := newJudge()
	sql := []byte("SELECT 1" + strings.Repeat(", 1", 2*inlineTokens) + " FOR UPDATE")
	if v := j.Judge(sql, verdict.Routing); v.Flags != verdict.Write|verdict.Locking|verdict.Unknown {
		t.Errorf("before it is parsed the verdict is %s", names(v.Flags))
	}
	j.Wait()
	if v := j.Judge(sql, verdict.Routing); v.Flags != verdict.Write|verdict.Locking {
		t.Errorf("the verdict is %s", names(v.Flags))
	}
}

func TestSlowParsesAreReportedWithoutSecrets(t *testing.T) {
	var reports []Parse
	j := NewJudge(Options{Slow: 1, Report: func(p Parse) { reports = append(reports, p) }})
	j.Judge([]byte("SELECT 'secret' FROM t"), verdict.Tree)
	j.Judge([]byte("SET a.b = 'secret'"), verdict.Tree)
	if len(reports) != 2 || reports[0].Text != "SELECT '' FROM t" || reports[1].Text != "" || reports[0].Duration < time.Nanosecond {
		t.Errorf("%+v", reports)
	}
}

// names spells flags out.
func names(f verdict.Flags) string {
	all := []string{
		"Write", "Locking", "Begin", "ReadOnly", "ReadWrite", "End", "Savepoint", "Several", "Copy", "Show", "Notify", "Execute",
		"Settings", "Unnamed", "Authorization", "Temp", "Hold", "Prepare", "Lock", "Listen", "Unlisten", "Discard", "Unknown", "Primary", "Replica",
	}
	var set []string
	for i, name := range all {
		if f&(1<<i) != 0 {
			set = append(set, name)
		}
	}
	return "[" + strings.Join(set, " ") + "]"
}

func TestALookUpAllocatesNothing(t *testing.T) {
	j := newJudge()
	for _, sql := range [][]byte{[]byte("SELECT 1"), []byte("SELECT a, b FROM t WHERE a = $1 AND b = 'some text' FOR UPDATE")} {
		j.Judge(sql, verdict.Tree)
		j.Judge(sql, verdict.Tree)
		if n := testing.AllocsPerRun(100, func() { j.Judge(sql, verdict.Tree) }); n != 0 {
			t.Errorf("%q: %v allocations", sql, n)
		}
	}
}

func BenchmarkHit(b *testing.B) {
	for _, sql := range []string{"SELECT 1", "SELECT a, b FROM t WHERE a = $1 AND b = 'some text' FOR UPDATE"} {
		b.Run(sql[:8], func(b *testing.B) {
			j := newJudge()
			text := []byte(sql)
			b.ReportAllocs()
			for b.Loop() {
				j.Judge(text, verdict.Tree)
			}
		})
		b.Run("constants/"+sql[:8], func(b *testing.B) {
			j := newJudge()
			text := []byte(sql)
			b.ReportAllocs()
			for b.Loop() {
				text[7] ^= 1 // so that the very bytes are not remembered
				j.look(question{sql: text, needs: verdict.Tree})
			}
		})
	}
}

func BenchmarkScanOnly(b *testing.B) {
	j := newJudge()
	text := []byte("SELECT 1")
	b.ReportAllocs()
	for b.Loop() {
		j.Judge(text, verdict.State|verdict.Locks)
	}
}

// BenchmarkTextsThatDifferInConstants is about texts as an ORM sends them, each with another
// constant, so that none is remembered as it is.
func BenchmarkTextsThatDifferInConstants(b *testing.B) {
	for _, sql := range []string{
		"SELECT a, b FROM t WHERE id = 1000000000",
		"SELECT id, name, email FROM users WHERE id = 1000000000 LIMIT 1",
		`SELECT "users"."id", "users"."name", "users"."email" FROM "users" WHERE "users"."tenant_id" = 17 AND "users"."id" = 1000000000 LIMIT 1`,
		`SELECT "o"."id", "o"."created_at", "o"."total", "c"."name" FROM "orders" AS "o" INNER JOIN "customers" AS "c" ON ("o"."customer_id" = "c"."id") WHERE ("o"."state" = 'open' AND "o"."created_at" > '2026-01-01T00:00:00'::timestamp AND NOT ("c"."id" = 1000000000)) ORDER BY "o"."created_at" DESC LIMIT 21`,
	} {
		at := strings.Index(sql, "1000000000")
		for _, needs := range []verdict.Needs{verdict.State | verdict.Locks | verdict.Tree, verdict.State | verdict.Locks} {
			mode := "on"
			if needs&verdict.Tree == 0 {
				mode = "auto"
			}
			b.Run(fmt.Sprintf("%s/%d bytes", mode, len(sql)), func(b *testing.B) {
				j, text := newJudge(), []byte(sql)
				b.ReportAllocs()
				n := 1_000_000_000
				for b.Loop() {
					n++
					strconv.AppendInt(text[:at], int64(n), 10)
					j.Judge(text, needs)
				}
			})
		}
	}
}
