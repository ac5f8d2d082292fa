package e2e

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/pgebb/pgebb/frontend/frontendtest"
	"github.com/pgebb/pgebb/internal/testpg"
)

// TestWhatIsPrivateIsInTheLogOnly: a client learns neither addresses nor why exactly
// Postgres does not let the pooler in, but where in the log that is.
func TestWhatIsPrivateIsInTheLogOnly(t *testing.T) {
	pg := testpg.ForTest(t)
	database := pg.Database(t)
	for name, c := range map[string]struct {
		config, users string
		login         frontendtest.Login
		message, log  string
	}{
		"nobody listens": {
			fmt.Sprintf("[[databases]]\nname = %q\nhost = \"127.0.0.1\"\nport = 1\n", database), "", frontendtest.Login{},
			"checkout timeout", "127.0.0.1:1",
		},
		"a wrong server password": {"", "server_password = \"wrong\"\n", frontendtest.Login{}, "the pooler's login to Postgres failed", "password authentication failed"},
		"an unknown database":     {"", "", frontendtest.Login{Database: "nowhere"}, `database "nowhere" does not exist`, "no [[databases]] entry"},
	} {
		t.Run(strings.ReplaceAll(name, " ", "-"), func(t *testing.T) {
			o := pg.Options(database, "transaction", 1)
			o.General += "checkout_timeout = 300\n"
			o.Users += c.users
			if c.config != "" {
				o.Config = c.config
			}
			p := testpg.Pgebb(t, o)
			login := through(p, database)
			if c.login.Database != "" {
				login.Database = c.login.Database
			}
			_, err := frontendtest.Connect(login)
			refused, ok := err.(*frontendtest.Refused)
			if !ok || !strings.Contains(refused.Error(), c.message) || strings.Contains(refused.Show(), c.log) || strings.Contains(refused.Show(), "127.0.0.1") {
				t.Fatalf("a client is told %v", err)
			}
			inLogOnly(t, p, err, c.log)
		})
	}
}

// inLogOnly checks that an error that a client was told names a line of the log, which has
// something that the error has not.
func inLogOnly(t *testing.T, p *testpg.Process, err error, private string) {
	t.Helper()
	refused, ok := err.(*frontendtest.Refused)
	if !ok {
		t.Fatalf("a client is told %v", err)
	}
	told := refused.Show()
	id := regexp.MustCompile(`error_id ([a-z0-9]+-[0-9]+)`).FindStringSubmatch(told)
	if id == nil || strings.Contains(told, private) {
		t.Fatalf("a client is told %s", told)
	}
	eventually(t, 5*time.Second, func() string {
		for _, line := range strings.Split(p.Log(), "\n") {
			if strings.Contains(line, "error_id="+id[1]+" ") && strings.Contains(strings.ReplaceAll(line, `\"`, `"`), private) {
				return ""
			}
		}
		return fmt.Sprintf("the log does not have %q under %s:\n%s", private, id[1], p.Log())
	})
}

// TestTheLogSaysWhyAClientIsGone: pgebb's own reason comes before that the client has
// closed its side, too.
func TestTheLogSaysWhyAClientIsGone(t *testing.T) {
	pg := testpg.ForTest(t)
	database := pg.Database(t)
	o := pg.Options(database, "transaction", 1)
	o.General = "log_format = \"json\"\nclient_idle_timeout = 300\n"
	p := testpg.Pgebb(t, o)
	polite := connect(t, through(p, database))
	if err := polite.Say(&pgproto3.Terminate{}); err != nil {
		t.Fatal(err)
	}
	connect(t, through(p, database)).Close()
	idle := connect(t, through(p, database))
	wantFatal(t, idle, "57P05", "client_idle_timeout")
	idle.Close()
	want := map[string]bool{
		"the client said goodbye": true, "the client closed its connection without saying goodbye": true, "disconnecting idle client (SQLSTATE 57P05)": true,
	}
	eventually(t, 5*time.Second, func() string {
		seen := map[string]bool{}
		for _, line := range strings.Split(strings.TrimSpace(p.Log()), "\n") {
			var entry struct {
				Msg, Reason string
				Backlog     int
			}
			if err := json.Unmarshal([]byte(line), &entry); err != nil {
				t.Fatalf("%s: %v", line, err)
			}
			if entry.Msg == "client disconnected" {
				seen[entry.Reason] = true
			}
		}
		for reason := range want {
			if !seen[reason] {
				return fmt.Sprintf("%q is not among %v", reason, seen)
			}
		}
		return ""
	})
}

// TestSIGTERMTellsClients: what they are told costs nothing, and they need not guess.
func TestSIGTERMTellsClients(t *testing.T) {
	pg := testpg.ForTest(t)
	database := pg.Database(t)
	p := testpg.Pgebb(t, pg.Options(database, "transaction", 3))
	idle, inside, busy := connect(t, through(p, database)), connect(t, through(p, database)), connect(t, through(p, database))
	query(t, idle, "SELECT 1")
	query(t, inside, "BEGIN")
	if err := busy.Say(&pgproto3.Query{String: "SELECT pg_sleep(100), 'told'"}); err != nil {
		t.Fatal(err)
	}
	running(t, pg, database, "%told%")
	_ = p.Signal(syscall.SIGTERM)
	for _, c := range []*frontendtest.Client{idle, inside, busy} {
		wantFatal(t, c, "57P01", "shutting down")
	}
	if code := ended(t, p); code != 0 {
		t.Errorf("exit code %d", code)
	}
}
