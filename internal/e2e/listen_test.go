package e2e

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/pgebb/pgebb/frontend/frontendtest"
	"github.com/pgebb/pgebb/internal/testpg"
	"github.com/pgebb/pgebb/internal/wire"
)

// listening starts a pgebb where LISTEN works in a mode, with room for some notifications.
func listening(t *testing.T, pg *testpg.Server, database, mode string, size, room int) *testpg.Process {
	t.Helper()
	o := pg.Options(database, mode, size)
	o.General += fmt.Sprintf("pub_sub_channel_size = %d\n", room)
	return testpg.Pgebb(t, o)
}

// driverBatch is what a driver sends for a statement.
func driverBatch(statements ...string) (all []pgproto3.FrontendMessage) {
	for _, sql := range statements {
		all = append(all, &pgproto3.Parse{Query: sql}, &pgproto3.Bind{}, &pgproto3.Describe{ObjectType: 'P'}, &pgproto3.Execute{})
	}
	return append(all, &pgproto3.Sync{})
}

func simple(sql string) []pgproto3.FrontendMessage {
	return []pgproto3.FrontendMessage{&pgproto3.Query{String: sql}}
}

// named prepares a statement, as a batch of its own, and bound runs it.
func named(name, sql string) []pgproto3.FrontendMessage {
	return []pgproto3.FrontendMessage{&pgproto3.Parse{Name: name, Query: sql}, &pgproto3.Describe{ObjectType: 'S', Name: name}, &pgproto3.Sync{}}
}

func bound(name string) []pgproto3.FrontendMessage {
	return []pgproto3.FrontendMessage{&pgproto3.Bind{PreparedStatement: name}, &pgproto3.Execute{}, &pgproto3.Sync{}}
}

// listenScripts are what a client does that may listen to a, b, C and others.
var listenScripts = []struct {
	name string
	says [][]pgproto3.FrontendMessage // each is sent in one piece
}{
	{"simple", [][]pgproto3.FrontendMessage{simple("LISTEN a"), simple("LISTEN b"), simple("UNLISTEN a")}},
	{"twice", [][]pgproto3.FrontendMessage{simple("LISTEN a"), simple("LISTEN a"), simple("UNLISTEN a"), simple("LISTEN b")}},
	{"names", [][]pgproto3.FrontendMessage{simple(`LISTEN A`), simple(`LISTEN "C"`), simple(`LISTEN "d""e,f"`), simple("LISTEN " + strings.Repeat("x", 70))}},
	{"extended", [][]pgproto3.FrontendMessage{driverBatch("LISTEN a"), driverBatch("LISTEN b"), driverBatch("UNLISTEN a")}},
	{"prepared", [][]pgproto3.FrontendMessage{named("l", "LISTEN a"), named("m", "LISTEN b"), named("u", "UNLISTEN *"), bound("l"), bound("m"), bound("u"), bound("m"), bound("u"), bound("l")}},
	{"prepared only", [][]pgproto3.FrontendMessage{named("l", "LISTEN a"), simple("LISTEN b")}},
	{"commit", [][]pgproto3.FrontendMessage{simple("BEGIN"), simple("LISTEN a"), simple("SELECT 1"), simple("COMMIT")}},
	{"rollback", [][]pgproto3.FrontendMessage{simple("LISTEN b"), simple("BEGIN"), simple("LISTEN a"), simple("ROLLBACK")}},
	{"rollback of unlisten", [][]pgproto3.FrontendMessage{simple("LISTEN a"), simple("LISTEN b"), simple("BEGIN"), simple("UNLISTEN a"), simple("ROLLBACK")}},
	{"commit of unlisten", [][]pgproto3.FrontendMessage{simple("LISTEN a"), simple("LISTEN b"), simple("BEGIN"), simple("SELECT 1"), simple("UNLISTEN a"), simple("COMMIT")}},
	{"savepoints", [][]pgproto3.FrontendMessage{
		simple("LISTEN a"), simple("BEGIN"), simple("SAVEPOINT s"), simple("UNLISTEN a"), simple("LISTEN b"), simple("ROLLBACK TO s"),
		simple(`LISTEN "C"`), simple("SAVEPOINT r"), simple("UNLISTEN b"), simple("ROLLBACK TO r"), simple("UNLISTEN b"), simple("COMMIT"),
	}},
	{"unlisten and again", [][]pgproto3.FrontendMessage{simple("LISTEN a"), simple("BEGIN; UNLISTEN a; LISTEN a; LISTEN b; UNLISTEN b; COMMIT")}},
	{"unlisten all and reset", [][]pgproto3.FrontendMessage{
		simple("LISTEN a"), simple("LISTEN b"), simple("SELECT pg_advisory_unlock_all(); CLOSE ALL; UNLISTEN *; RESET ALL;"), simple(`LISTEN "C"`),
	}},
	{"discard all", [][]pgproto3.FrontendMessage{simple("LISTEN a"), simple("DISCARD ALL"), simple("LISTEN b")}},
	{"discard all, extended", [][]pgproto3.FrontendMessage{driverBatch("LISTEN a"), driverBatch("DISCARD ALL"), driverBatch("LISTEN b")}},
	{"discard all that fails", [][]pgproto3.FrontendMessage{simple("LISTEN a"), simple("BEGIN"), simple("DISCARD ALL"), simple("ROLLBACK")}},
	{"failed transaction", [][]pgproto3.FrontendMessage{simple("LISTEN a"), simple("BEGIN"), simple("SELECT 1/0"), simple("LISTEN b"), simple("UNLISTEN a"), driverBatch("UNLISTEN a"), simple("COMMIT")}},
	{"several that fail", [][]pgproto3.FrontendMessage{simple("LISTEN a"), simple("UNLISTEN a; LISTEN b; SELECT 1/0")}},
	{"batch that fails", [][]pgproto3.FrontendMessage{driverBatch("LISTEN a"), driverBatch("UNLISTEN a", "LISTEN b", "SELECT 1/0", "LISTEN c")}},
	{"batch of several", [][]pgproto3.FrontendMessage{driverBatch("LISTEN a", "SELECT 1", "LISTEN b", "UNLISTEN a"), driverBatch("SELECT 2", "UNLISTEN b", `LISTEN "C"`)}},
	{"batches in one piece", [][]pgproto3.FrontendMessage{append(append(append(driverBatch("SELECT 1"), driverBatch("LISTEN a")...), driverBatch("LISTEN b", "UNLISTEN a")...), driverBatch("SELECT 2")...)}},
	{"queries in one piece", [][]pgproto3.FrontendMessage{append(append(append(append(simple("SELECT 1"), simple("LISTEN a")...), simple("SELECT 2")...), simple("UNLISTEN a; LISTEN b")...), simple("SELECT 3")...)}},
	{"transaction in one piece", [][]pgproto3.FrontendMessage{append(append(append(simple("BEGIN"), simple("LISTEN a")...), simple("COMMIT")...), simple("SELECT 3")...)}},
	{"in a DO", [][]pgproto3.FrontendMessage{simple("DO $$BEGIN LISTEN a; EXECUTE 'LISTEN b'; END$$")}},
	{"malformed", [][]pgproto3.FrontendMessage{simple("LISTEN"), simple("LISTEN a.b"), simple("LISTEN a b"), simple("UNLISTEN"), simple("LISTEN a")}},
	{"two-phase", [][]pgproto3.FrontendMessage{simple("LISTEN a"), simple("BEGIN"), simple("LISTEN b"), simple("PREPARE TRANSACTION 'x'")}},
	{"with a lock", [][]pgproto3.FrontendMessage{simple("SELECT pg_advisory_lock(1)"), simple("LISTEN a"), simple("LISTEN b"), simple("UNLISTEN a"), simple(`LISTEN "C"`), simple("UNLISTEN b"), simple("SELECT pg_advisory_unlock(1)")}},
	{"read only", [][]pgproto3.FrontendMessage{simple("LISTEN a"), simple("BEGIN READ ONLY"), simple("UNLISTEN a"), simple("LISTEN b"), simple("COMMIT")}},
	{"empty unlisten", [][]pgproto3.FrontendMessage{simple("UNLISTEN a"), simple("UNLISTEN *"), driverBatch("UNLISTEN *"), simple("LISTEN a")}},
	{"chain", [][]pgproto3.FrontendMessage{simple("BEGIN"), simple("LISTEN a"), simple("COMMIT AND CHAIN"), simple("LISTEN b"), simple("ROLLBACK")}},
	{"long text", [][]pgproto3.FrontendMessage{simple("SELECT '" + strings.Repeat("x", 50_000) + "'; LISTEN a")}},
	{"notifies itself as it listens", [][]pgproto3.FrontendMessage{simple("BEGIN; NOTIFY a, '1'; LISTEN a; LISTEN b; NOTIFY b, '2'; COMMIT")}},
}

// TestWhatAClientListensToIsWhatItWouldWithPostgres: whatever it has done, and with which
// answers; and then it hears what others notify, and nothing else.
func TestWhatAClientListensToIsWhatItWouldWithPostgres(t *testing.T) {
	pg := testpg.ForTest(t)
	database := pg.Database(t)
	for _, mode := range []string{"transaction", "statement"} {
		p := listening(t, pg, database, mode, 1, 100)
		other := connect(t, through(p, database))
		for _, s := range listenScripts {
			t.Run(mode+"/"+s.name, func(t *testing.T) {
				if mode == "statement" && hasBegin(s.says) {
					return // there are no transactions of several statements
				}
				want := playListen(t, connect(t, direct(pg, database)), other, s.says)
				got := playListen(t, connect(t, through(p, database)), other, s.says)
				if got != want {
					t.Errorf("pgebb says\n%s\nPostgres says\n%s", got, want)
				}
			})
		}
		if left := query(t, other, "SELECT pg_listening_channels()"); len(left) > 0 {
			t.Errorf("a server is left listening to %q", left)
		}
	}
}

func hasBegin(says [][]pgproto3.FrontendMessage) bool {
	return strings.Contains(fmt.Sprintf("%#v", flat(says)), "BEGIN")
}

func flat(says [][]pgproto3.FrontendMessage) (texts []string) {
	for _, piece := range says {
		for _, m := range piece {
			texts = append(texts, fmt.Sprint(m))
		}
	}
	return texts
}

// playListen is what a client is told that says something, and what it hears then. What it
// notifies itself comes in front of the ReadyForQuery, or soon after.
func playListen(t *testing.T, c, other *frontendtest.Client, says [][]pgproto3.FrontendMessage) string {
	t.Helper()
	var answers, heard []string
	note := func(messages []frontendtest.Message) {
		for _, m := range messages {
			if m.Type == wire.NotificationResponse {
				heard = append(heard, m.Show())
			} else {
				answers = append(answers, m.Show())
			}
		}
	}
	for _, piece := range append(says[:len(says):len(says)], simple(`LISTEN "the end"`)) {
		if err := c.Say(piece...); err != nil {
			t.Fatal(err)
		}
		for _, m := range piece {
			switch m.(type) {
			case *pgproto3.Query, *pgproto3.Sync:
				got, err := c.Until('Z')
				if err != nil {
					t.Fatal(err)
				}
				note(got)
			}
		}
	}
	for _, channel := range []string{"a", "b", "c", `"C"`, `"d""e,f"`, strings.Repeat("x", 63), "nobody", `"the end"`} {
		query(t, other, "NOTIFY "+channel+", 'from another'")
	}
	for len(heard) == 0 || !strings.Contains(heard[len(heard)-1], "the end") {
		got, err := c.Until('A')
		if err != nil {
			t.Fatalf("after %q: %v", heard, err)
		}
		note(got)
	}
	return strings.Join(append(answers, heard...), "\n")
}

// hears reads notifications, and nothing else, until there are as many as are wanted.
func hears(t *testing.T, c *frontendtest.Client, want ...string) {
	t.Helper()
	for i, w := range want {
		m, err := c.Receive()
		if err != nil {
			t.Fatalf("notification %d of %d: %v", i+1, len(want), err)
		}
		if got := strings.TrimPrefix(m.Show(), "NotificationResponse "); got != fmt.Sprintf("%q", strings.Replace(w, " ", "\x00", 1)+"\x00") {
			t.Fatalf("notification %d is %s, want %q", i+1, m.Show(), w)
		}
	}
}

// commitsUnheard ends a transaction, behind which nothing else is told yet.
func commitsUnheard(t *testing.T, c *frontendtest.Client) {
	t.Helper()
	if err := c.Say(&pgproto3.Query{String: "COMMIT"}); err != nil {
		t.Fatal(err)
	}
	if got, err := c.Until('Z'); err != nil || frontendtest.Types(got) != "CZ" {
		t.Fatalf("COMMIT is answered with %q, %v", frontendtest.Types(got), err)
	}
}

// TestOneConnectionListensForAll: it is there as long as anybody listens, Postgres is asked
// once for each channel, and the process that has notified is that of Postgres.
func TestOneConnectionListensForAll(t *testing.T) {
	t.Parallel()
	pg := testpg.ForTest(t)
	database := pg.Database(t)
	p := listening(t, pg, database, "transaction", 2, 100)
	watcher := connect(t, direct(pg, database))
	listeners := func() string {
		return fmt.Sprint(query(t, watcher, "SELECT query FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'pgebb LISTEN'"))
	}
	var clients []*frontendtest.Client
	for i := range 50 {
		c := connect(t, through(p, database))
		query(t, c, "LISTEN everybody")
		if i == 0 && !strings.Contains(listeners(), "LISTEN") {
			t.Errorf("what listens is %s", listeners())
		}
		clients = append(clients, c)
	}
	if got := show(t, p, "SHOW LISTENERS"); len(got) != 1 || got[0]["channel"] != "everybody" || got[0]["listeners"] != "50" {
		t.Errorf("SHOW LISTENERS has %v", got)
	}
	pid := query(t, watcher, "SELECT pg_backend_pid()")[0]
	query(t, watcher, "NOTIFY everybody, 'hello'")
	for _, c := range clients {
		m, err := c.Receive()
		if err != nil {
			t.Fatal(err)
		}
		if n, _ := wire.ParseNotification(m.Body); fmt.Sprint(n.PID) != pid || string(n.Payload) != "hello" {
			t.Fatalf("a client hears %s of process %d, want that of %s", m.Show(), n.PID, pid)
		}
	}
	for _, c := range clients[1:] {
		c.Reset()
	}
	eventually(t, 10*time.Second, func() string {
		if got := show(t, p, "SHOW LISTENERS"); len(got) != 1 || got[0]["listeners"] != "1" {
			return fmt.Sprint("SHOW LISTENERS has ", got)
		}
		return ""
	})
	query(t, watcher, "NOTIFY everybody, 'again'")
	hears(t, clients[0], "everybody again")
	query(t, clients[0], "UNLISTEN *")
	eventually(t, 20*time.Second, func() string {
		if got := show(t, p, "SHOW LISTENERS"); len(got) > 0 || listeners() != "[]" {
			return fmt.Sprint(got, listeners())
		}
		return ""
	})
	query(t, clients[0], "LISTEN other")
	query(t, watcher, "NOTIFY other, 'once more'")
	hears(t, clients[0], "other once more")
	query(t, clients[0], "UNLISTEN *")
	quiet(t, p, database)
}

// quiet is what epilogue checks where another connection may be there for a while.
func quiet(t *testing.T, p *testpg.Process, database string) {
	t.Helper()
	eventually(t, 2*time.Second, func() string { return poolBusy(t, p, database) })
}

// TestNotificationsWaitForTheEndOfTheTransaction, as with Postgres.
func TestNotificationsWaitForTheEndOfTheTransaction(t *testing.T) {
	pg := testpg.ForTest(t)
	database := pg.Database(t)
	p := listening(t, pg, database, "transaction", 2, 100)
	c, other := connect(t, through(p, database)), connect(t, through(p, database))
	query(t, c, "LISTEN a")
	query(t, c, "BEGIN")
	query(t, other, "NOTIFY a, 'during'")
	query(t, other, "BEGIN; NOTIFY a, 'never'; ROLLBACK")
	for range 20 {
		if err := c.Say(&pgproto3.Query{String: "SELECT 1"}); err != nil {
			t.Fatal(err)
		}
		if got, err := c.Until('Z'); err != nil || frontendtest.Types(got) != "TDCZ" {
			t.Fatalf("in a transaction a client is told %q, %v", frontendtest.Types(got), err)
		}
	}
	commitsUnheard(t, c)
	hears(t, c, "a during")
	query(t, other, "SELECT pg_notify('a', 'behind')")
	hears(t, c, "a behind")
}

// TestTheConnectionThatListensIsReplaced when it is lost, by a RECONNECT, and by a reload that
// changes how to log in.
func TestTheConnectionThatListensIsReplaced(t *testing.T) {
	pg := testpg.ForTest(t)
	database := pg.Database(t)
	o := pg.Options(database, "transaction", 1)
	o.General += "pub_sub_channel_size = 10\n"
	p := testpg.Pgebb(t, o)
	c, other, watcher := connect(t, through(p, database)), connect(t, direct(pg, database)), pg.Conn(t, database)
	query(t, c, "LISTEN a")
	listener := func() (pid string) {
		_ = watcher.QueryRow(t.Context(), "SELECT pid::text FROM pg_stat_activity WHERE datname = $1 AND application_name = 'pgebb LISTEN' AND query LIKE '%a%'", database).Scan(&pid)
		return pid
	}
	for _, end := range []func(pid string){
		func(pid string) {
			if _, err := watcher.Exec(t.Context(), "SELECT pg_terminate_backend($1::int)", pid); err != nil {
				t.Fatal(err)
			}
		},
		func(string) { show(t, p, "RECONNECT") },
		func(string) {
			o.Users = strings.Replace(o.Users, "[[users]]", "[[users]]\nserver_password = \""+database+"\"\nstatement_timeout = 70000", 1)
			if err := p.Configure(o); err != nil {
				t.Fatal(err)
			}
			show(t, p, "RELOAD")
		},
	} {
		before := listener()
		end(before)
		eventually(t, 10*time.Second, func() string {
			if now := listener(); now == "" || now == before {
				return fmt.Sprintf("the listener was %q and is %q", before, now)
			}
			return ""
		})
		// It may be there and not listen to everything yet: that is in one statement, which is over when the other
		// end of a notification can see it.
		d := connect(t, through(p, database))
		query(t, d, "LISTEN b")
		query(t, other, "NOTIFY a, 'x'")
		hears(t, c, "a x")
		d.Close()
	}
	if !strings.Contains(p.Log(), "clients miss what is notified") {
		t.Error("the log does not say that notifications may have been lost")
	}
}

// TestListenFailsWhereNobodyCanListen, and then the client goes on.
func TestListenFailsWhereNobodyCanListen(t *testing.T) {
	pg := testpg.ForTest(t)
	database := pg.Database(t)
	p := listening(t, pg, database, "transaction", 1, 10)
	c := connect(t, through(p, database))
	query(t, c, "SELECT 1")
	pg.Exec(t, "postgres", fmt.Sprintf("ALTER ROLE %q CONNECTION LIMIT 1", database))
	refused(t, c, "LISTEN", "58000", simple("LISTEN a")...)
	refused(t, c, "Parse", "58000", driverBatch("LISTEN a")...)
	query(t, c, "SELECT 1")
	if got := show(t, p, "SHOW LISTENERS"); len(got) > 0 {
		t.Errorf("SHOW LISTENERS has %v", got)
	}
	pg.Exec(t, "postgres", fmt.Sprintf("ALTER ROLE %q CONNECTION LIMIT -1", database))
	query(t, c, "LISTEN a")
	query(t, c, "NOTIFY a, 'now'")
	hears(t, c, "a now")
	query(t, c, "SET client_encoding = 'LATIN1'")
	refused(t, c, "another encoding", "0A000", simple("LISTEN b")...)
}

// TestNothingIsLostOrDoubledAsAClientBeginsToListen: from its first notification on it hears all
// that another goes on to send, each once and in order; whether or not the channel is listened
// to already, and also while it listens to more and more.
func TestNothingIsLostOrDoubledAsAClientBeginsToListen(t *testing.T) {
	pg := testpg.ForTest(t)
	database := pg.Database(t)
	p := listening(t, pg, database, "transaction", 2, 100_000)
	sender := connect(t, direct(pg, database))
	stop, stopped := make(chan struct{}), make(chan int)
	go func() {
		n := 0
		defer func() { stopped <- n }()
		for {
			select {
			case <-stop:
				return
			default:
			}
			if _, err := sender.Query(fmt.Sprintf("NOTIFY a, '%d'", n)); err != nil {
				return
			}
			n++
		}
	}()
	var clients []*frontendtest.Client
	for range 30 {
		c := connect(t, through(p, database))
		clients = append(clients, c)
		if err := c.Say(&pgproto3.Query{String: "LISTEN a"}, &pgproto3.Query{String: "LISTEN b"}, &pgproto3.Query{String: "UNLISTEN b"}); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range clients { // whoever is here has begun to listen
		m, err := c.Receive()
		if err != nil || m.Type != 'C' {
			t.Fatalf("%v, %v", m, err)
		}
	}
	close(stop)
	last := <-stopped
	query(t, sender, "NOTIFY a, 'end'")
	for i, c := range clients {
		next := -1
		for {
			m, err := c.Receive()
			if err != nil {
				t.Fatalf("client %d, waiting for %d of %d: %v", i, next, last, err)
			}
			if m.Type != wire.NotificationResponse {
				continue
			}
			n, _ := wire.ParseNotification(m.Body)
			if string(n.Payload) == "end" {
				if next >= 0 && next != last {
					t.Errorf("client %d hears nothing of %d to %d", i, next, last-1)
				}
				break
			}
			var got int
			if _, err := fmt.Sscan(string(n.Payload), &got); err != nil {
				t.Fatal(err)
			}
			if next >= 0 && got != next {
				t.Fatalf("client %d hears %d behind %d", i, got, next-1)
			}
			next = got + 1
		}
	}
}

// TestWhatIsNotListenedToAnyMoreIsNotHeard: not even what has come before the UNLISTEN and had to
// wait for the end of the transaction.
func TestWhatIsNotListenedToAnyMoreIsNotHeard(t *testing.T) {
	pg := testpg.ForTest(t)
	database := pg.Database(t)
	p := listening(t, pg, database, "transaction", 2, 100)
	c, d, other := connect(t, through(p, database)), connect(t, through(p, database)), connect(t, through(p, database))
	query(t, c, "LISTEN a; LISTEN b")
	query(t, d, "LISTEN b")
	query(t, c, "BEGIN")
	query(t, other, "NOTIFY a, '1'")
	query(t, other, "NOTIFY b, '2'")
	hears(t, d, "b 2") // so it has come
	query(t, c, "UNLISTEN a")
	commitsUnheard(t, c)
	hears(t, c, "b 2")
	query(t, other, "NOTIFY a, '3'; NOTIFY b, '4'")
	hears(t, c, "b 4")
}
