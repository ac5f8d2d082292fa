package admin

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgproto3"
)

var update = flag.Bool("update", false, "write the golden files anew")

// TestColumns compares names, order and types of the columns of each command with a
// golden file, and looks that both protocols describe and fill them alike.
func TestColumns(t *testing.T) {
	for dialect, name := range map[Dialect]string{PgDog: "pgdog", PgBouncer: "pgbouncer"} {
		f := &fake{stats: []StatsRow{{ID: 7, Place: somePlace}}}
		o := connect(t, newConsole(f), dialect, true)
		var lines []string
		for _, cmd := range commands {
			if cmd.Dialect&dialect == 0 || cmd.Columns == nil {
				continue
			}
			statement := cmd.Names[0]
			if statement == "PROBE" {
				statement += " 'postgres://u:p@h/d'"
			}
			simple := strings.Split(o.ask(statement), "\n")
			lines = append(lines, statement+": "+strings.ReplaceAll(strings.TrimPrefix(simple[0], "columns "), "/0", "")+" → "+simple[len(simple)-1])
			o.say(&pgproto3.Parse{Query: statement}, &pgproto3.Bind{}, &pgproto3.Describe{ObjectType: 'P'}, &pgproto3.Execute{}, &pgproto3.Sync{})
			extended := strings.Split(o.answer(), "\n")
			if got := extended[2:]; !slices.Equal(got, simple) {
				t.Errorf("%s: the extended protocol says\n%s\nthe simple one\n%s", statement, strings.Join(got, "\n"), strings.Join(simple, "\n"))
			}
			o.say(&pgproto3.Parse{Query: statement}, &pgproto3.Bind{ResultFormatCodes: []int16{1}}, &pgproto3.Execute{}, &pgproto3.Sync{})
			if got := o.answer(); strings.Contains(got, "ERROR") || strings.Count(got, "\nrow") != len(simple)-2 {
				t.Errorf("%s: in the binary format it is %s", statement, got)
			}
		}
		golden(t, name+".txt", strings.Join(lines, "\n")+"\n")
	}
}

// golden compares a text with a file.
func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s is\n%s\nwant\n%s", path, got, want)
	}
}

func TestRowsOfBothDialects(t *testing.T) {
	f := &fake{stats: []StatsRow{{ID: 7, Place: somePlace, Total: Counters{
		Transactions: 2, Queries: 3, Assignments: 1, Received: 10, Sent: 20, TransactionTime: 5 * time.Millisecond, WaitTime: time.Millisecond, ClientParses: 4, Logins: 5,
	}}}}
	c := newConsole(f)
	dog, bouncer := connect(t, c, PgDog, true), connect(t, c, PgBouncer, true)
	for _, test := range []struct {
		o             *operator
		command, want string
	}{
		{dog, "SHOW POOLS", "row 7|app|ann|10.0.0.5|5432|0|primary|2|3|4|1|8|1|500000|transaction|f|f|t|6|3|1|2|t|f"},
		{dog, "SHOW CLIENTS", "row 41|ann|app|10.0.0.9|40000|idle|none|2026-01-02 03:04:05.678 UTC|2026-01-02 03:04:05.678 UTC|3|2|0|1.000|1.500|0.000|10|20|0|psql|f|1"},
		{dog, "SHOW CLIENTS state, id", "row 41|ann|app|10.0.0.9|40000|idle"},
		{dog, "SHOW LISTS", "row 1|2|3|0|4|0|6"},
		{dog, "SHOW CONFIG", "row checkout_timeout|5s|5s|default|t\nrow host|0.0.0.0|0.0.0.0|default|f\nrow query_timeout|1500ms|off|SET|t\nrow stats_period|15000|15000|default|t"},
		{dog, "SHOW CONFIG LIKE '%timeout'", "row checkout_timeout|5s|5s|default|t\nrow query_timeout|1500ms|off|SET|t"},
		{dog, "SHOW PREPARED", "row __pgebb_1|SELECT 1|NULL|2|100\nrow __pgebb_2|SELECT name FROM people|NULL|1|200"},
		{dog, "show prepared statements people;", "row __pgebb_2|SELECT name FROM people|NULL|1|200"},
		{dog, "SHOW INSTANCE_ID", "row one"},
		{dog, "SHOW VERSION", "row pgebb 1.2.3"},
		{dog, "SHOW BANS", "row 8|app|ann|10.0.0.5|5432|0|primary|down|1500\nrow 9|app|ann|10.0.0.5|5432|0|primary|wanted|NULL"},
		{dog, "SHOW REPLICATION", "row 7|app|ann|10.0.0.5|5432|0|primary|NULL|1/AB|1000ms|f\nrow 8|app|ann|10.0.0.5|5432|0|primary|NULL|NULL|NULL|NULL\n" +
			"row 9|app|ann|10.0.0.5|5432|0|primary|20ms|0/FF|1000ms|t"},
		{bouncer, "SHOW POOLS", "row app|ann|3|2|0|0|5|0|0|3|0|0|1|1|500000|transaction|NULL\nrow pgbouncer|pgbouncer|2|0|0|0|0|0|0|0|0|0|0|0|0|statement|NULL"},
		{bouncer, "SHOW DATABASES", "row app|10.0.0.5|5432|app_1|NULL|10|1|0|0|NULL|NULL|0|8|0|5|1|0"},
		{bouncer, "SELECT STATS_TOTALS", "row app|1|2|3|10|20|5000|0|1000|4|0|0|5"},
		{bouncer, "SHOW USERS", "row ann|||NULL|0|8|0|5\nrow zoe|||NULL|0|0|0|0"},
		{bouncer, "SHOW CLIENTS", "row C|ann|app|none|idle|10.0.0.9|40000|10.0.0.1|6432|2026-01-02 03:04:05 UTC|2026-01-02 03:04:05 UTC|0|0|0|||0|TLSv1.3/TLS_AES_128_GCM_SHA256|psql|1|41"},
		{bouncer, "SHOW ACTIVE_SOCKETS", "row C|ann|app|none|cl_active|10.0.0.9|40000|10.0.0.1|6432|2026-01-02 03:04:05 UTC|2026-01-02 03:04:05 UTC|0|0|0|||0|TLSv1.3/TLS_AES_128_GCM_SHA256|psql|1|41|0|0|0|0|7|0|0"},
		{bouncer, "SHOW TOTALS", "row total_server_assignment_count|1\nrow total_xact_count|2\nrow total_query_count|3\nrow total_client_bytes|10\nrow total_server_bytes|20\n" +
			"row total_xact_time|5000\nrow total_query_time|0\nrow total_wait_time|1000\nrow total_ps_client_parse_count|4\nrow total_ps_server_parse_count|0\n" +
			"row total_ps_bind_count|0\nrow total_client_login_count|5\nrow avg_server_assignment_count|0\nrow avg_xact_count|0\nrow avg_query_count|0\n" +
			"row avg_client_bytes|0\nrow avg_server_bytes|0\nrow avg_xact_time|0\nrow avg_query_time|0\nrow avg_wait_time|0\nrow avg_ps_client_parse_count|0\n" +
			"row avg_ps_server_parse_count|0\nrow avg_ps_bind_count|0\nrow avg_client_login_count|0"},
		{dog, "SHOW STATE", "row active|yes\nrow paused|no\nrow suspended|no"},
		{bouncer, "SHOW STATE", "row active|yes\nrow paused|no\nrow suspended|no"},
		{bouncer, "SHOW VERSION", "row pgebb 1.2.3"},
	} {
		lines := strings.Split(test.o.ask(test.command), "\n")
		if got := strings.Join(lines[1:len(lines)-1], "\n"); got != test.want {
			t.Errorf("%s has\n%s\nwant\n%s", test.command, got, test.want)
		}
	}
	if got := bouncer.ask("SHOW CONFIG"); !strings.Contains(got, "\nrow query_wait_timeout|5|5|yes\n") || !strings.Contains(got, "\nrow query_timeout|1.5|0|yes\n") ||
		!strings.Contains(got, "\nrow stats_period|15|15|yes\n") || !strings.Contains(got, "\nrow max_client_conn|0|0|no\n") {
		t.Errorf("SHOW CONFIG has\n%s", got)
	}
}

func TestAveragesAreOfTheLastPeriod(t *testing.T) {
	f := &fake{stats: []StatsRow{{ID: 7, Place: somePlace, Total: Counters{Queries: 100}}}}
	c := newConsole(f)
	c.averages.sample(f.stats, time.Second)
	c.averages.sample([]StatsRow{{ID: 7, Total: Counters{Queries: 160, Transactions: 20, Assignments: 20, QueryTime: 120 * time.Millisecond, WaitTime: 10 * time.Millisecond}}}, 10*time.Second)
	table := func(o *operator) map[string]string {
		lines := strings.Split(o.ask("SHOW STATS"), "\n")
		values := map[string]string{}
		for i, name := range strings.Fields(lines[0])[1:] {
			values[strings.Split(name, ":")[0]] = strings.Split(strings.TrimPrefix(lines[1], "row "), "|")[i]
		}
		return values
	}
	dog, bouncer := table(connect(t, c, PgDog, true)), table(connect(t, c, PgBouncer, true))
	for name, want := range map[string]string{"avg_query_count": "6.000", "avg_xact_count": "2.000", "avg_query_time": "2.000", "avg_wait_time": "0.500", "total_query_count": "100"} {
		if dog[name] != want {
			t.Errorf("%s is %s, want %s", name, dog[name], want)
		}
	}
	for name, want := range map[string]string{"avg_query_count": "6", "avg_query_time": "2000", "avg_wait_time": "500", "total_query_count": "100"} {
		if bouncer[name] != want {
			t.Errorf("PgBouncer's %s is %s, want %s", name, bouncer[name], want)
		}
	}
}

func TestCommandsDoWhatTheySay(t *testing.T) {
	f := &fake{}
	c := newConsole(f)
	dog, bouncer := connect(t, c, PgDog, true), connect(t, c, PgBouncer, true)
	for _, test := range []struct {
		o                    *operator
		command, told, reply string
	}{
		{dog, "PAUSE", "pause { }", "done PAUSE"},
		{dog, "pause App;", "pause { App}", "done PAUSE"},
		{dog, `PAUSE ann "my db"`, "pause {ann my db}", "done PAUSE"},
		{bouncer, "PAUSE app", "pause { app}", "done PAUSE"},
		{dog, "RESUME", "resume { }", "done RESUME"},
		{dog, "RECONNECT app", "reconnect { app}", "done RECONNECT"},
		{dog, "MAINTENANCE ON", "maintain { } true", "done MAINTENANCE"},
		{dog, "maintenance off app", "maintain { app} false", "done MAINTENANCE"},
		{dog, "BAN 7", "ban 7", "done BAN"},
		{dog, "UNBAN", "unban 0", "done UNBAN"},
		{dog, "HEALTHCHECK 7", "check 7", "done HEALTHCHECK"},
		{dog, "BAN 8", "ban 8", "ERROR 42704 there is no pool with the id 8. SHOW POOLS has the ids of pools."},
		{bouncer, "KILL app", "kill { app}", "done KILL"},
		{bouncer, "KILL_CLIENT 41", "kill client 41", "done KILL_CLIENT"},
		{bouncer, "KILL_CLIENT 42", "kill client 42", "ERROR 42704 client not found. "},
		{bouncer, "DISABLE app", "disable app true", "done DISABLE"},
		{bouncer, "ENABLE app", "disable app false", "done ENABLE"},
		{bouncer, "WAIT_CLOSE", "", "done WAIT_CLOSE"},
		{dog, "RELOAD", "reload", "NOTICE port needs a restart\ndone RELOAD"},
		{dog, "SET query_timeout TO 5000", "set query_timeout=5000", "done SET"},
		{dog, "SET Query_Timeout = '5000'", "set query_timeout=5000", "done SET"},
		{dog, "RESET query_timeout", `reset "query_timeout"`, "done RESET"},
		{dog, "RESET QUERY_CACHE", "reset query_cache", "done RESET"},
		{dog, "RESET ALL", `reset ""`, "done RESET"},
		{dog, "RESET PREPARED", "reset prepared", "NOTICE 3 statements that nobody used were dropped\ndone RESET PREPARED"},
		{dog, "SET application_name TO 'x'", "", "NOTICE SET ignored\ndone SET"},
		{dog, "SET SESSION CHARACTERISTICS AS TRANSACTION READ ONLY", "", "done SET"},
		{dog, "BEGIN", "", "done BEGIN"},
		{dog, "BEGIN; SHOW VERSION; COMMIT", "", "done BEGIN\ncolumns version:25/0\nrow pgebb 1.2.3\ndone SHOW VERSION\ndone COMMIT"},
		{dog, "SHOW server_version", "", "columns server_version:25/0\nrow 1.2.3 (pgebb)\ndone SHOW"},
		{dog, "SHOW TRANSACTION ISOLATION LEVEL", "", "columns transaction_isolation:25/0\nrow read committed\ndone SHOW"},
		{dog, "SHUTDOWN", "shutdown 1", "done SHUTDOWN"},
		{bouncer, "SHUTDOWN", "shutdown 0", "done SHUTDOWN"},
		{bouncer, "SHUTDOWN WAIT_FOR_CLIENTS", "shutdown 2", "done SHUTDOWN"},
		{dog, "PROBE 'postgres://u:p@h/d?a=b'", "probe postgres://u:p@h/d?a=b", "columns latency:20/0\nrow 12\ndone PROBE"},
		{dog, " ; -- nothing\n", "", "EmptyQueryResponse"},
		{dog, "/* a driver's */ SHOW VERSION", "", "columns version:25/0\nrow pgebb 1.2.3\ndone SHOW VERSION"},
	} {
		if reply := test.o.ask(test.command); reply != test.reply {
			t.Errorf("%q is answered with\n%s\nwant\n%s", test.command, reply, test.reply)
		}
		if told := f.heard(); told != test.told {
			t.Errorf("%q does %q, want %q", test.command, told, test.told)
		}
	}
	f.err = errFake
	for command, want := range map[string]string{
		"PAUSE app": "ERROR 58000 it does not work. ", "SET query_timeout TO x": "ERROR 22023 it does not work. ",
		"RELOAD": "NOTICE port needs a restart\nERROR F0000 RELOAD failed, nothing has changed: it does not work. ",
	} {
		if got := dog.ask(command); got != want {
			t.Errorf("%s that fails says %q, want %q", command, got, want)
		}
	}
}

func TestTheLogHasWhatWasDoneAndNoSecrets(t *testing.T) {
	f := &fake{}
	c := newConsole(f)
	o := connect(t, c, PgDog, true)
	for _, command := range []string{
		"SHOW POOLS", "BEGIN", "SET application_name TO x", "pause ann app", "SET auth_password TO 'hush'", "RESET ALL", "PROBE 'postgres://u:hush@h/d'", "SHUTDOWN",
	} {
		o.ask(command)
	}
	f.err = errFake
	o.ask("RECONNECT app")
	stats := connect(t, c, PgDog, false)
	stats.ask("PAUSE")
	stats.ask("SET query_timeout TO 5")
	var got []string
	for line := range strings.Lines(o.log.String()) {
		_, message, _ := strings.Cut(strings.TrimSpace(line), "msg=")
		got = append(got, message)
	}
	want := []string{
		`"console command" command="PAUSE ann app"`, `"console command" command="SET auth_password"`, `"console command" command="RESET all"`,
		`"console command" command=PROBE`, `"console command" command=SHUTDOWN`,
		`"console command" command="RECONNECT app"`, `"console command failed" command="RECONNECT app" error="it does not work"`,
	}
	if !slices.Equal(got, want) {
		t.Errorf("the log has\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if log := stats.log.String(); log != "" {
		t.Errorf("what a stats user may not do is logged: %s", log)
	}
}

func TestWhatIsNotUnderstoodIsAnErrorWithASuggestion(t *testing.T) {
	c := newConsole(&fake{})
	dog, bouncer := connect(t, c, PgDog, true), connect(t, c, PgBouncer, true)
	const lists = "SHOW HELP lists what the console knows."
	for _, test := range []struct {
		o            *operator
		command      string
		message, tip string
	}{
		{dog, "SHOW POLS", "SHOW POLS", "Did you mean SHOW POOLS? " + lists},
		{dog, "shwo clients", "shwo clients", "Did you mean SHOW CLIENTS? " + lists},
		{dog, "RELAOD", "RELAOD", "Did you mean RELOAD? " + lists},
		{dog, "PUASE app", "PUASE app", "Did you mean PAUSE? " + lists},
		{dog, "SHOW STATS_TOTAL", "SHOW STATS_TOTAL", "Did you mean SHOW STATS_TOTALS? " + lists},
		{bouncer, "SHOW DATABASE", "SHOW DATABASE", "Did you mean SHOW DATABASES? " + lists},
		{dog, "xyzzy", "xyzzy", lists},
		{dog, "SELECT c.oid FROM pg_class c", "SELECT c.oid FROM pg_class c", "The console is no database and takes no SQL. " + lists},
		{dog, "SHOW POOLS app", "nothing can stand behind SHOW POOLS", ""},
		{dog, "PAUSE a b c", "PAUSE is for all databases, for one, or for a user at one", ""},
		{dog, "BAN x", "BAN takes the id of a pool, or nothing for all", "SHOW POOLS has the ids of pools."},
		{dog, "MAINTENANCE", "MAINTENANCE is ON or OFF, for all databases or for one", ""},
		{dog, "SET query_timeout", "SET takes a key and a value: SET query_timeout TO 5000", ""},
		{dog, "KILL_CLIENT", "the id of the client is missing: KILL_CLIENT 42", "SHOW CLIENTS has the ids of clients."},
		{dog, "KILL_CLIENT 1 2", "KILL_CLIENT takes the id of one client", ""},
		{dog, "KILL_CLIENT x", `"x" is no id of a client`, ""},
	} {
		want := fmt.Sprintf("ERROR 08P01 syntax error in admin command: %s. %s", test.message, test.tip)
		if got := test.o.ask(test.command); got != want {
			t.Errorf("%q is answered with\n%s\nwant\n%s", test.command, got, want)
		}
	}
	if got := dog.ask("SHOW CLIENTS stat"); !strings.HasPrefix(got, `ERROR 42703 column "stat" does not exist. The columns are id, user,`) {
		t.Errorf("an unknown column is answered with %s", got)
	}
}

func TestStatsUsersMayOnlyLook(t *testing.T) {
	f := &fake{}
	for _, dialect := range []Dialect{PgDog, PgBouncer} {
		o := connect(t, newConsole(f), dialect, false)
		for _, cmd := range commands {
			if cmd.Dialect&dialect == 0 {
				continue
			}
			statement := cmd.Names[0]
			switch statement {
			case "SET":
				statement = "SET query_timeout TO 1"
			case "RESET":
				statement = "RESET query_timeout"
			}
			got := o.ask(statement)
			if looks := strings.HasPrefix(statement, "SHOW ") || cmd.run == nil || statement == "SET SESSION CHARACTERISTICS"; looks == strings.HasPrefix(got, "ERROR 42501 admin access needed") {
				t.Errorf("%s is answered with %s", statement, got)
			}
		}
	}
	if told := f.heard(); told != "" {
		t.Errorf("they have made it do %s", told)
	}
}

func TestWaitsEndWhenThereIsNothingLeftOrNobodyWaitsAnyMore(t *testing.T) {
	f := &fake{inUse: 1}
	c := newConsole(f)
	o := connect(t, c, PgBouncer, true)
	o.say(&pgproto3.Query{String: "PAUSE"})
	f.busy(0)
	if got := o.answer(); got != "done PAUSE" || f.heard() != "pause { }" {
		t.Errorf("a PAUSE is answered with %s", got)
	}
	f.busy(1)
	o.say(&pgproto3.Query{String: "PAUSE app"})
	for f.heard() == "" { // until it waits
	}
	c.Cancel(o.key.ProcessID, []byte{1, 2, 3, 4})
	c.Cancel(o.key.ProcessID, o.key.SecretKey)
	if got := o.answer(); got != "ERROR 57014 canceling PAUSE due to user request. " || f.heard() != "resume { app}" {
		t.Errorf("a cancelled PAUSE is answered with %s", got)
	}
	o.say(&pgproto3.Query{String: "PAUSE"})
	for f.heard() == "" {
	}
	o.conn.Close()
	<-o.done
	o.done <- nil
	if told := f.heard(); told != "resume { }" {
		t.Errorf("a PAUSE whose operator has left does %q", told)
	}
}

func TestErrorsOfTheExtendedProtocol(t *testing.T) {
	o := connect(t, newConsole(&fake{}), PgDog, true)
	for _, test := range []struct {
		say  []pgproto3.FrontendMessage
		want string
	}{
		{[]pgproto3.FrontendMessage{&pgproto3.Parse{Query: "SHOW X"}, &pgproto3.Bind{}, &pgproto3.Execute{}}, "ERROR 08P01 syntax error in admin command: SHOW X. SHOW HELP lists what the console knows."},
		{[]pgproto3.FrontendMessage{&pgproto3.Parse{Query: "SHOW POOLS; SHOW POOLS"}}, "ERROR 42601 cannot insert multiple commands into a prepared statement. "},
		{[]pgproto3.FrontendMessage{&pgproto3.Bind{PreparedStatement: "s"}}, `ERROR 26000 prepared statement "s" does not exist. `},
		{[]pgproto3.FrontendMessage{&pgproto3.Execute{Portal: "p"}}, `ERROR 34000 portal "p" does not exist. `},
		{[]pgproto3.FrontendMessage{&pgproto3.Parse{}, &pgproto3.Bind{}, &pgproto3.Describe{ObjectType: 'P'}, &pgproto3.Execute{}}, "ParseComplete\nBindComplete\nNoData\nEmptyQueryResponse"},
		{[]pgproto3.FrontendMessage{&pgproto3.Parse{Name: "s", Query: "SHOW VERSION"}, &pgproto3.Describe{ObjectType: 'S', Name: "s"}, &pgproto3.Close{ObjectType: 'S', Name: "s"}}, "ParseComplete\nParameterDescription\ncolumns version:25/0\nCloseComplete"},
	} {
		o.say(append(test.say, &pgproto3.Sync{})...)
		if got := o.answer(); got != test.want {
			t.Errorf("it is answered with\n%s\nwant\n%s", got, test.want)
		}
	}
}
