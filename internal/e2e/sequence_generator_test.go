package e2e

import (
	"fmt"
	"math/rand/v2"
)

// This file makes up what clients say: legal traffic, most of which works, and all of which
// Postgres answers the same way each time.

// generator makes up programs.
type generator struct {
	*rand.Rand
	table string // the client's own
	full  bool   // SQL's PREPARE and EXECUTE are carried from server to server

	rounds  life
	say     [][]string // the round at hand
	bound   bool       // the unnamed statement was bound in the batch in which it was parsed
	parsed  bool       // there is an unnamed statement
	fresh   bool       // it was parsed in this batch
	portal  bool       // the unnamed portal was made in this batch
}

// names of statements and of portals. Few, so that they are used again and again.
var (
	statementNames = []string{"a", "b", "c", "long name, with \"quotes\" and blanks"}
	portalNames    = []string{"", "", "p", "q"}
)

// statementsWith are what is prepared, by the number of their parameters. %s is the table.
var statementsWith = [2][]string{
	{
		"SELECT 1", "SELECT 1", "SELECT g, 'row' FROM generate_series(1, 5) g", "SELECT count(*), coalesce(sum(i), 0) FROM %s", "", "SELECT 1/0",
		"INSERT INTO %s VALUES (7)", "nonsense", "SELECT * FROM missing", "BEGIN", "COMMIT", "ROLLBACK", "SELECT repeat('x', 9000)",
		"COPY (SELECT generate_series(1, 3)) TO STDOUT", "SHOW application_name", "DO $$ BEGIN RAISE NOTICE 'said'; END $$",
		"SELECT $1::int", "SAVEPOINT s", "ROLLBACK TO s", "INSERT INTO %s_later VALUES (1)",
	},
	{
		"SELECT $1::int + 1", "SELECT $1::int + 1", "INSERT INTO %s VALUES ($1) RETURNING i", "SELECT 1 / $1::int", "SELECT $1::text", "DELETE FROM %s WHERE i < $1",
		"SELECT i FROM %s WHERE i > $1 ORDER BY i", "SELECT g FROM generate_series(1, $1) g", "UPDATE %s SET i = i + $1", "SELECT set_config('application_name', $1, false)",
	},
}

// queries are what is said in a Query.
var queries = []string{
	"SELECT 1", "BEGIN", "BEGIN", "COMMIT", "COMMIT", "ROLLBACK", "SELECT 1; SELECT 2", "", ";", "SELECT 1/0", "nonsense", "SELECT 1; SELECT 1/0; SELECT 2",
	"INSERT INTO %s VALUES (1); SELECT count(*) FROM %s", "INSERT INTO %s VALUES (2); SELECT 1/0", "BEGIN; INSERT INTO %s VALUES (3)", "COMMIT; BEGIN",
	"SELECT count(*) FROM %s", "SAVEPOINT s", "ROLLBACK TO s", "SET LOCAL work_mem = '1MB'", "SET application_name = 'other'", "SET DateStyle = 'German, DMY'",
	"RESET DateStyle", "SELECT '2020-02-03'::date", "DECLARE cur CURSOR FOR SELECT generate_series(1, 6)", "FETCH 2 FROM cur", "CLOSE cur",
	"COPY (SELECT generate_series(1, 4)) TO STDOUT", "COPY missing FROM STDIN", "SELECT 1; COPY (SELECT 2) TO STDOUT; SELECT 3", "DO $$ BEGIN RAISE NOTICE 'said'; END $$",
	"SELECT repeat('y', 20000)", "INSERT INTO %s_later VALUES (1)",
	"DEALLOCATE a", "DEALLOCATE b", "deallocate prepare c", "DEALLOCATE ALL", "DISCARD ALL", "DISCARD PLANS", "COMMIT AND CHAIN", "/* said */ SELECT 5 -- so",
}

// sqlQueries are about statements that are prepared by SQL.
var sqlQueries = []string{
	"PREPARE a AS SELECT 1", "PREPARE b (int) AS SELECT $1 + 1", "PREPARE c AS INSERT INTO %s VALUES (5)", "EXECUTE a", "EXECUTE b (3)", "EXECUTE c", "EXECUTE b",
	"PREPARE a AS nonsense", "EXECUTE missing", "prepare a (text) as select $1", "EXPLAIN (COSTS off) EXECUTE a",
}

// program makes up the life of a client.
func (g *generator) program(rounds int) life {
	for len(g.rounds) < rounds {
		g.next()
	}
	g.add("Sync")
	g.add("Query", "ROLLBACK")
	g.end(false)
	return g.rounds
}

func (g *generator) text(sql string) string {
	var args []any
	for i := 0; i+1 < len(sql); i++ {
		if sql[i] == '%' && sql[i+1] == 's' {
			args = append(args, g.table)
		}
	}
	return fmt.Sprintf(sql, args...)
}

func pick(r *rand.Rand, of []string) string { return of[r.IntN(len(of))] }

func (g *generator) add(words ...string) {
	g.say = append(g.say, words)
	switch words[0] {
	case "Sync":
		g.fresh, g.portal = false, false
	case "Query":
		g.fresh, g.parsed, g.portal = false, false, false
	case "Bind":
		g.portal = g.portal || words[1] == ""
	}
}

// end ends a round.
func (g *generator) end(blind bool) {
	if len(g.say) > 0 {
		g.rounds = append(g.rounds, round{g.say, blind})
		g.say = nil
	}
}

// next adds something to the round at hand, and may end it.
func (g *generator) next() {
	switch n := g.IntN(100); {
	case n < 16:
		g.parse()
	case n < 34:
		g.bind()
	case n < 42:
		g.describe()
	case n < 57:
		g.add("Execute", g.aPortal(), pick(g.Rand, []string{"0", "0", "1", "2"}))
	case n < 63:
		g.close()
	case n < 79:
		g.sync()
	case n < 83:
		g.add("Flush")
		g.end(false)
	case n < 85:
		g.end(true)
	case n < 88:
		g.copyIn()
	case n < 91:
		g.whole()
	default:
		sql := pick(g.Rand, queries)
		if g.full && g.IntN(2) == 0 {
			sql = pick(g.Rand, sqlQueries)
		}
		g.add("Query", g.text(sql))
		if g.IntN(4) > 0 {
			g.end(false)
		}
	}
}

func (g *generator) sync() {
	g.add("Sync")
	if g.IntN(3) > 0 {
		g.end(false)
	}
}

// statement is a name to parse or bind.
func (g *generator) statement() string {
	if g.IntN(2) == 0 {
		return ""
	}
	return pick(g.Rand, statementNames)
}

func (g *generator) parse() {
	name := g.statement()
	n := g.IntN(2)
	words := []string{"Parse", name, g.text(pick(g.Rand, statementsWith[n]))}
	if n == 1 && g.IntN(4) == 0 {
		words = append(words, pick(g.Rand, []string{"23", "25", "0"})) // int4, text, unspecified
	}
	if name != "" && g.IntN(2) == 0 {
		g.add("CloseStatement", name)
	}
	g.add(words...)
	if name == "" {
		g.parsed, g.fresh, g.bound = true, true, false
	}
}

func (g *generator) bind() {
	name := g.statement()
	if name == "" {
		// In transaction pooling, an unnamed statement lives as long as its batch, or up to
		// the batch that binds it.
		if !g.parsed || g.bound && !g.fresh {
			return
		}
		g.bound = g.bound || g.fresh
	}
	words := []string{"Bind", pick(g.Rand, portalNames), name}
	if g.IntN(2) == 0 {
		words = append(words, pick(g.Rand, []string{"0", "1", "2", "3", "word"}))
	}
	g.add(words...)
}

// aPortal is one to describe or execute. What a Query that has failed leaves of the unnamed one
// makes Postgres 15 crash.
func (g *generator) aPortal() string {
	if name := pick(g.Rand, portalNames); name != "" || g.portal {
		return name
	}
	return "p"
}

func (g *generator) describe() {
	if g.IntN(2) == 0 {
		g.add("DescribePortal", g.aPortal())
		return
	}
	name := g.statement()
	if name == "" && (!g.parsed || g.bound && !g.fresh) {
		return
	}
	g.add("DescribeStatement", name)
}

func (g *generator) close() {
	if g.IntN(3) == 0 {
		g.add("ClosePortal", pick(g.Rand, portalNames))
		return
	}
	name := g.statement()
	g.add("CloseStatement", name)
	if name == "" {
		g.parsed = false
	}
}

// whole is a batch as drivers say it.
func (g *generator) whole() {
	for range 1 + g.IntN(3) {
		g.add("Parse", "", g.text(pick(g.Rand, statementsWith[0])))
		g.add("Bind", "", "")
		g.add("DescribePortal", "")
		g.add("Execute", "")
	}
	g.parsed, g.fresh, g.bound = true, true, true
	g.sync()
}

// copyIn is a COPY FROM, by a Query or not, with its data in the same round or not.
func (g *generator) copyIn() {
	sql := g.text(pick(g.Rand, []string{"COPY %s FROM STDIN", "COPY %s FROM STDIN", "COPY missing FROM STDIN"}))
	simple := g.IntN(2) == 0
	early := false
	if simple {
		g.add("Query", g.text(pick(g.Rand, []string{"", "SELECT 1; ", "BEGIN; "})+sql))
	} else {
		g.add("Parse", "", sql)
		g.add("Bind", "", "")
		g.add("Execute", "")
		if early = g.IntN(4) == 0; early {
			g.add("Sync")
		}
		g.parsed = false
	}
	if g.IntN(2) == 0 {
		if !simple && !early {
			g.add("Flush")
		}
		g.end(false)
	}
	rows := []string{"1\n", "1\n2\n", "3", "\n"}
	if !early {
		rows = append(rows, "bad\n")
	} else {
		rows = rows[:2] // whether a Sync is read before a failure is a matter of chance
	}
	for range g.IntN(4) {
		g.add("CopyData", pick(g.Rand, rows))
	}
	if early || g.IntN(4) > 0 {
		g.add("CopyDone")
	} else {
		g.add("CopyFail", "no more")
	}
	if !simple || g.IntN(4) == 0 {
		g.add("Sync")
	}
	g.end(false)
}
