package e2e

import (
	"context"
	"database/sql"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/pgebb/pgebb/internal/testpg"
)

// exporterTables are what prometheus-community's pgbouncer_exporter asks for, with the
// columns that it reads as text and as numbers.
var exporterTables = map[string]struct{ text, numbers []string }{
	"SHOW STATS": {[]string{"database"}, []string{
		"total_query_count", "total_query_time", "total_received", "total_sent", "total_wait_time", "total_xact_count", "total_xact_time",
		"total_client_parse_count", "total_server_parse_count", "total_bind_count", "total_server_assignment_count",
	}},
	"SHOW POOLS": {[]string{"database", "user"}, []string{
		"cl_active", "cl_waiting", "cl_active_cancel_req", "cl_waiting_cancel_req", "sv_active", "sv_active_cancel", "sv_being_canceled",
		"sv_idle", "sv_used", "sv_tested", "sv_login", "maxwait", "maxwait_us",
	}},
	"SHOW DATABASES": {[]string{"name", "host", "port", "database", "force_user", "pool_mode"}, []string{
		"pool_size", "reserve_pool_size", "max_connections", "current_connections", "paused", "disabled",
	}},
}

// TestPgBouncersExporter asks as prometheus-community's pgbouncer_exporter does, over
// lib/pq, in the simple and in the extended protocol.
func TestPgBouncersExporter(t *testing.T) {
	pg := testpg.ForTest(t)
	database := pg.Database(t)
	p := testpg.Pgebb(t, pg.Options(database, "transaction", 1))
	query(t, connect(t, through(p, database)), "SELECT 1")
	for _, options := range []string{"", "&binary_parameters=yes"} {
		db, err := sql.Open("postgres", fmt.Sprintf("postgres://admin:%s@%s/pgbouncer?sslmode=disable%s", testpg.AdminPassword, p.Address(), options))
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		if err := db.Ping(); err != nil {
			t.Fatal(err)
		}
		for command, want := range exporterTables {
			lines := scan(t, db, command+";")
			if len(lines) == 0 {
				t.Errorf("%s has no lines", command)
			}
			for i, line := range lines {
				for _, column := range want.text {
					if _, ok := line[column]; !ok {
						t.Errorf("%s has no column %s", command, column)
					}
				}
				for _, column := range want.numbers {
					isNumber(t, fmt.Sprintf("%s, line %d: %s", command, i, column), line[column].String)
				}
			}
		}
		lists, config := pairs(scan(t, db, "SHOW LISTS;"), "list", "items"), pairs(scan(t, db, "SHOW CONFIG;"), "key", "value")
		for _, name := range []string{
			"databases", "users", "pools", "free_clients", "used_clients", "login_clients", "free_servers", "used_servers",
			"dns_names", "dns_zones", "dns_queries", "dns_pending",
		} {
			isNumber(t, "SHOW LISTS: "+name, lists[name])
		}
		for _, name := range []string{"max_client_conn", "max_user_connections"} {
			isNumber(t, "SHOW CONFIG: "+name, config[name])
		}
		if v := scan(t, db, "SHOW VERSION;"); len(v) != 1 || v[0]["version"].String == "" {
			t.Errorf("SHOW VERSION has %v", v)
		}
	}
}

func isNumber(t *testing.T, what, text string) {
	t.Helper()
	if _, err := strconv.ParseFloat(text, 64); err != nil {
		t.Errorf("%s is no number: %v", what, err)
	}
}

// pairs makes a map of two columns.
func pairs(lines []map[string]sql.NullString, key, value string) map[string]string {
	m := map[string]string{}
	for _, line := range lines {
		m[line[key].String] = line[value].String
	}
	return m
}

// scan returns the rows of a query by column.
func scan(t *testing.T, db *sql.DB, query string) []map[string]sql.NullString {
	t.Helper()
	rows, err := db.Query(query)
	if err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	defer rows.Close()
	columns, err := rows.Columns()
	if err != nil {
		t.Fatal(err)
	}
	var all []map[string]sql.NullString
	for rows.Next() {
		values, into := make([]sql.NullString, len(columns)), make([]any, len(columns))
		for i := range values {
			into[i] = &values[i]
		}
		if err := rows.Scan(into...); err != nil {
			t.Fatalf("%s: %v", query, err)
		}
		line := map[string]sql.NullString{}
		for i, c := range columns {
			line[c] = values[i]
		}
		all = append(all, line)
	}
	if err := rows.Err(); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	return all
}

// shows are all that the console shows.
func shows(t *testing.T, p *testpg.Process) []string {
	t.Helper()
	var all []string
	for _, line := range show(t, p, "SHOW HELP") {
		if command, _, _ := strings.Cut(line["command"], " ["); strings.HasPrefix(command, "SHOW ") {
			all = append(all, command)
		}
	}
	if len(all) < 20 {
		t.Fatalf("SHOW HELP lists only %q", all)
	}
	return all
}

// TestDriversReadTheConsole has drivers read all that the console shows, in the protocols
// that they speak.
func TestDriversReadTheConsole(t *testing.T) {
	pg := testpg.ForTest(t)
	database := pg.Database(t)
	p := testpg.Pgebb(t, pg.Options(database, "transaction", 1))
	query(t, connect(t, through(p, database)), "SELECT 1")
	commands := shows(t, p)
	for _, mode := range []string{"cache_statement", "describe_exec", "exec", "simple_protocol"} {
		readByPgx(t, fmt.Sprintf("postgres://admin:%s@%s/admin?sslmode=disable&default_query_exec_mode=%s", testpg.AdminPassword, p.Address(), mode), commands)
	}
	for program, script := range map[string]string{"/usr/bin/python3": "internal/e2e/python/console.py", "node": "internal/e2e/node/console.js"} {
		out := runs(t, p, "admin", "", program, append([]string{filepath.Join(testpg.Root(), script)}, commands...)...)
		if !strings.Contains(out, "all is well") {
			t.Errorf("%s prints %s", program, out)
		}
	}
	url := fmt.Sprintf("postgres://admin:%s@%s/admin", testpg.AdminPassword, p.Address())
	out := runs(t, p, "admin", strings.Join(commands, ";\n")+";\n\\d\n\\l\n", program(t, "psql"), "-X", "-q", url)
	if n := strings.Count(out, " row)\n") + strings.Count(out, " rows)\n"); n != len(commands) {
		t.Errorf("psql prints %d tables, want %d:\n%s", n, len(commands), out)
	}
	if n := strings.Count(out, "The console is no database and takes no SQL."); n != 2 {
		t.Errorf("psql prints of \\d and \\l:\n%s", out)
	}
}

func readByPgx(t *testing.T, url string, commands []string) {
	t.Helper()
	ctx := context.Background()
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(ctx)
	for _, command := range commands {
		rows, err := conn.Query(ctx, command)
		for err == nil && rows.Next() {
			_, err = rows.Values()
		}
		rows.Close()
		if err == nil {
			err = rows.Err()
		}
		if err != nil {
			t.Errorf("%s: %s: %v", url, command, err)
		}
	}
}
