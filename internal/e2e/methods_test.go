package e2e

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/pgebb/pgebb/backend"
	"github.com/pgebb/pgebb/config"
	"github.com/pgebb/pgebb/frontend/frontendtest"
	"github.com/pgebb/pgebb/internal/scram"
	"github.com/pgebb/pgebb/internal/testpg"
	"github.com/pgebb/pgebb/internal/wire"
)

// methods are the roles of the Postgres that startWithMethods starts, each of which it
// authenticates in its own way.
var methods = []string{"scram", "md5", "plain", "trust"}

// startWithMethods starts a Postgres that asks each of its roles for its password, which
// is "secret", in another way.
func startWithMethods(t *testing.T) *testpg.Server {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "pgebb-hba-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil { // Postgres runs as somebody else
		t.Fatal(err)
	}
	hba := filepath.Join(dir, "pg_hba.conf")
	const rules = `
host all postgres 127.0.0.1/32 scram-sha-256
host all trust 127.0.0.1/32 trust
host all plain 127.0.0.1/32 password
host all md5 127.0.0.1/32 md5
host all all 127.0.0.1/32 scram-sha-256
`
	if err := os.WriteFile(hba, []byte(rules), 0o644); err != nil {
		t.Fatal(err)
	}
	pg, err := testpg.Start("hba_file=" + hba)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pg.Stop)
	pg.Exec(t, "postgres",
		"CREATE ROLE scram LOGIN PASSWORD 'secret'", "CREATE ROLE plain LOGIN PASSWORD 'secret'", "CREATE ROLE trust LOGIN",
		"SET password_encryption = md5", "CREATE ROLE md5 LOGIN PASSWORD 'secret'")
	return pg
}

func TestHowPostgresAsksForThePassword(t *testing.T) {
	pg := startWithMethods(t)
	t.Run("Connect", func(t *testing.T) { testConnect(t, pg) })
	t.Run("through", func(t *testing.T) { testServersOfEachMethod(t, pg) })
	t.Run("refusals", func(t *testing.T) { testRefusals(t, pg) })
	t.Run("MD5 hashes", func(t *testing.T) { testMD5Hashes(t, pg) })
	t.Run("sealed", func(t *testing.T) { testSealed(t, pg) })
}

// testSealed logs in with what nobody else may read, without encryption.
func testSealed(t *testing.T, pg *testpg.Server) {
	for _, role := range methods {
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		defer cancel()
		s, err := backend.Connect(ctx, backend.Target{
			Network: "tcp", Address: net.JoinHostPort(pg.Host, strconv.Itoa(pg.Port)), User: role, Database: "postgres", Passwords: []string{"secret"}, Sealed: true,
		})
		if errors.Is(err, backend.ErrCredentials) != (role == "plain") || (err == nil) != (role != "plain") {
			t.Errorf("%s: %v", role, err)
		}
		if err == nil {
			s.Conn.Close()
		}
	}
}

// testConnect logs in to Postgres as pgebb does.
func testConnect(t *testing.T, pg *testpg.Server) {
	for _, role := range methods {
		for _, c := range []struct {
			passwords []string
			code      string // of the error; empty for none, "none" for one of ours
		}{
			{[]string{"secret"}, ""},
			{[]string{"old", "secret"}, ""},
			{[]string{"wrong"}, "28P01"},
			{[]string{"wrong", "too"}, "28P01"},
			{nil, "none"},
		} {
			want := c.code
			if role == "trust" {
				want = ""
			}
			ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
			defer cancel()
			s, err := backend.Connect(ctx, backend.Target{
				Network: "tcp", Address: net.JoinHostPort(pg.Host, strconv.Itoa(pg.Port)), User: role, Database: "postgres", Passwords: c.passwords,
				Params: []backend.Param{{Name: "application_name", Value: "p√†ss"}},
			})
			var se *backend.ServerError
			got := ""
			if errors.As(err, &se) {
				got = se.Code()
			} else if err != nil {
				got = "none"
			}
			if got != want {
				t.Errorf("%s with the passwords %q: %v, want %q", role, c.passwords, err, want)
			}
			if err != nil {
				continue
			}
			if s.PID == 0 || len(s.Secret) != 4 || !slices.ContainsFunc(s.Params, func(p backend.Param) bool { return p.Name == "server_version" }) {
				t.Errorf("%s: the session is %+v", role, s)
			}
			s.Conn.Close()
		}
	}
}

// testServersOfEachMethod has clients log in to pgebb in each way, and pgebb to Postgres
// in each way.
func testServersOfEachMethod(t *testing.T, pg *testpg.Server) {
	for _, auth := range methods {
		o := pg.Options("postgres", "transaction", 2)
		o.General += fmt.Sprintf("auth_type = %q\n", auth)
		o.Users = ""
		for _, role := range methods {
			o.Users += fmt.Sprintf("[[users]]\nname = %q\npassword = \"secret\"\ndatabase = \"postgres\"\n", role)
		}
		p := testpg.Pgebb(t, o)
		for _, role := range methods {
			c := connect(t, frontendtest.Login{Network: "tcp", Address: p.Address(), User: role, Password: "secret", Database: "postgres"})
			if got := query(t, c, "SELECT current_user"); got[0] != role {
				t.Errorf("auth_type %s: %s is %s in Postgres", auth, role, got[0])
			}
		}
	}
}

// testMD5Hashes has pgebb know no more than what Postgres keeps of a password with
// password_encryption = md5: from users.toml, or looked up.
func testMD5Hashes(t *testing.T, pg *testpg.Server) {
	as := func(p *testpg.Process, user, password string) frontendtest.Login {
		return frontendtest.Login{Network: "tcp", Address: p.Address(), User: user, Password: password, Database: "postgres"}
	}
	hash := verifierOf(t, pg, "md5")
	if !config.IsMD5(hash) {
		t.Fatalf("Postgres keeps %q", hash)
	}
	for _, auth := range []string{"md5", "plain"} {
		for from, lines := range map[string]string{"users.toml": "", "auth_query": looksUp(pg)} {
			o := pg.Options("postgres", "transaction", 2)
			o.General += fmt.Sprintf("auth_type = %q\n", auth) + lines
			o.Users = ""
			if lines == "" {
				o.Users = fmt.Sprintf("[[users]]\nname = \"md5\"\npassword_hash = %q\ndatabase = \"postgres\"\n", hash)
			}
			p := testpg.Pgebb(t, o)
			if got := query(t, connect(t, as(p, "md5", "secret")), "SELECT current_user"); got[0] != "md5" {
				t.Errorf("auth_type %s, hash from %s: md5 is %s in Postgres", auth, from, got[0])
			}
			for _, wrong := range []string{"wrong", hash} {
				if _, err := frontendtest.Connect(as(p, "md5", wrong)); code(err) != "28P01" {
					t.Errorf("auth_type %s, hash from %s, with the password %q: %v", auth, from, wrong, err)
				}
			}
		}
	}
	// Nor is it of any use where Postgres asks in another way.
	for _, role := range []string{"scram", "plain"} {
		_, err := backend.Connect(context.Background(), backend.Target{
			Network: "tcp", Address: net.JoinHostPort(pg.Host, strconv.Itoa(pg.Port)), User: role, Database: "postgres", Passwords: []string{hash},
		})
		if !errors.Is(err, backend.ErrCredentials) {
			t.Errorf("%s: %v", role, err)
		}
	}
}

// refusal is what somebody says who is not let in. Postgres and pgebb must answer with the
// same SQLSTATE and the same message.
type refusal struct {
	name    string
	startup []byte
	says    []string // answers to the requests for authentication
	ours    string   // what pgebb says where it cannot be the same, and why:
	why     string
}

func passwordMessage(body string) string {
	return string(wire.AppendRaw(nil, wire.Password, []byte(body)))
}

func saslFirst(first string) string {
	body := binary.BigEndian.AppendUint32([]byte(scram.Mechanism+"\x00"), uint32(len(first)))
	return passwordMessage(string(body) + first)
}

// refusals are the logins that fail, for roles of the given method.
func refusals(role string) []refusal {
	startup := func(pairs ...string) []byte { return wire.AppendStartup(nil, wire.Version30, pairs...) }
	as := startup("user", role, "database", "postgres")
	all := []refusal{
		{name: "version 2.0", startup: wire.AppendStartup(nil, 2<<16, "user", role), ours: "0A000 unsupported frontend protocol 2.0: pgebb supports 3.0 to 3.2", why: "it names itself"},
		{name: "version 4.0", startup: wire.AppendStartup(nil, 4<<16, "user", role), ours: "0A000 unsupported frontend protocol 4.0: pgebb supports 3.0 to 3.2", why: "it names itself"},
		{name: "SSLRequest twice", startup: []byte("\x00\x00\x00\x08\x04\xd2\x16\x2f\x00\x00\x00\x08\x04\xd2\x16\x2f"), ours: "0A000 unsupported frontend protocol 1234.5679: pgebb supports 3.0 to 3.2", why: "it names itself"},
		{name: "no user", startup: startup("database", "postgres")},
		{name: "an empty user", startup: startup("user", "", "database", "postgres")},
		{name: "no terminator", startup: []byte("\x00\x00\x00\x0d\x00\x03\x00\x00user\x00")},
		{name: "no value", startup: []byte("\x00\x00\x00\x10\x00\x03\x00\x00user\x00ab\x00")},
		{name: "bytes behind the end", startup: []byte("\x00\x00\x00\x11\x00\x03\x00\x00user\x00u\x00\x00x")},
		{name: "a length too short", startup: []byte("\x00\x00\x00\x07\x00\x03\x00")},
		{name: "a length too long", startup: []byte("\x7f\xff\xff\xff\x00\x03\x00\x00")},
		{name: "replication", startup: startup("user", role, "replication", "maybe"), ours: "0A000 replication connections are not supported through pgebb", why: "no value but false will do"},
	}
	switch role {
	case "trust":
		return append(all,
			refusal{name: "an argument", startup: startup("user", role, "database", "postgres", "options", "--nonsense")},
			refusal{name: "an option without a value", startup: startup("user", role, "database", "postgres", "options", "-c work_mem")},
			refusal{name: "an argument of another kind", startup: startup("user", role, "database", "postgres", "options", "surplus")},
			refusal{name: "a bad value", startup: startup("user", role, "database", "postgres", "work_mem", "much")},
			refusal{name: "a bad value in options", startup: startup("user", role, "database", "postgres", "options", "-c work_mem=much")},
			refusal{name: "no database", startup: startup("user", role, "database", "nowhere")},
		)
	case "md5", "plain":
		all = append(all,
			refusal{name: "a NUL inside", startup: as, says: []string{passwordMessage("a\x00b\x00")}},
			refusal{name: "no NUL", startup: as, says: []string{passwordMessage("abc")}},
			refusal{name: "nothing", startup: as, says: []string{passwordMessage("\x00")}},
		)
	case "scram":
		all = append(all,
			refusal{name: "no mechanism", startup: as, says: []string{passwordMessage("")}},
			refusal{name: "another mechanism", startup: as, says: []string{passwordMessage("PLAIN\x00\x00\x00\x00\x00")}},
			refusal{name: "no length", startup: as, says: []string{passwordMessage(scram.Mechanism + "\x00")}},
			refusal{name: "a length of more", startup: as, says: []string{passwordMessage(scram.Mechanism + "\x00\x00\x00\x00\x09n,,")}},
			refusal{name: "a negative length", startup: as, says: []string{passwordMessage(scram.Mechanism + "\x00\xff\xff\xff\xfe")}},
			refusal{name: "an unknown user", startup: startup("user", "nobody"), says: []string{passwordMessage("wrong\x00")}},
			refusal{name: "a length of less", startup: as, says: []string{passwordMessage(scram.Mechanism + "\x00\x00\x00\x00\x01n,,")}},
			refusal{name: "no SCRAM", startup: as, says: []string{saslFirst("hello")}},
			refusal{name: "an identity", startup: as, says: []string{saslFirst("n,a=root,n=,r=a")}, ours: "08P01 malformed SCRAM message", why: "the detail says that it is not supported"},
			refusal{name: "no initial response", startup: as, says: []string{passwordMessage(scram.Mechanism + "\x00\xff\xff\xff\xff"), passwordMessage("hello")}},
			refusal{name: "no proof", startup: as, says: []string{saslFirst("n,,n=,r=a"), passwordMessage("hello")}},
			refusal{name: "another nonce", startup: as, says: []string{saslFirst("n,,n=,r=a"), passwordMessage("c=biws,r=a,p=AAAA")}},
		)
	}
	return append(all,
		refusal{name: "another message", startup: as, says: []string{"Q\x00\x00\x00\x05\x00"}},
		refusal{name: "a wrong password", startup: as, says: []string{passwordMessage("wrong\x00")}},
		refusal{name: "a password too long", startup: as, says: []string{"p\x7f\xff\xff\xff"}, ours: "08P01 invalid password packet size", why: "Postgres closes, or calls the password wrong"},
	)
}

// refuse plays a refusal and returns the SQLSTATE and message, or that there is none.
func refuse(t *testing.T, address string, r refusal) string {
	t.Helper()
	c, err := frontendtest.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if err := c.Send(r.startup); err != nil {
		return "closed"
	}
	if strings.HasPrefix(r.name, "SSLRequest") {
		if _, err := c.Read(make([]byte, 1)); err != nil {
			t.Error(err)
		}
	}
	says := r.says
	for {
		m, err := c.Receive()
		if err != nil {
			return "closed"
		}
		switch {
		case m.Type == wire.ErrorResponse:
			return fmt.Sprintf("%s %s %s", wire.ErrorField(m.Body, 'S'), wire.ErrorField(m.Body, 'C'), wire.ErrorField(m.Body, 'M'))
		case m.Type == wire.ReadyForQuery:
			return "let in"
		case m.Type == wire.Authentication && len(says) > 0:
			if err := c.Send([]byte(says[0])); err != nil {
				return "closed"
			}
			says = says[1:]
		}
	}
}

// testRefusals compares what Postgres and pgebb say to who is not let in.
func testRefusals(t *testing.T, pg *testpg.Server) {
	for _, role := range methods {
		o := pg.Options("postgres", "transaction", 2)
		o.General += fmt.Sprintf("auth_type = %q\n", role)
		o.Users = fmt.Sprintf("[[users]]\nname = %q\npassword = \"secret\"\ndatabase = \"postgres\"\n", role)
		p := testpg.Pgebb(t, o)
		for _, r := range refusals(role) {
			theirs := refuse(t, net.JoinHostPort(pg.Host, strconv.Itoa(pg.Port)), r)
			ours := refuse(t, p.Address(), r)
			want := theirs
			if r.ours != "" {
				want = "FATAL " + r.ours
			}
			if ours != want {
				t.Errorf("%s, %s:\n  Postgres %s\n  pgebb    %s", role, r.name, theirs, ours)
			}
		}
	}
}

// TestTheSameStartUpParameterTwice compares which value holds, in Postgres and in pgebb.
func TestTheSameStartUpParameterTwice(t *testing.T) {
	pg := testpg.ForTest(t)
	database := pg.Database(t)
	p := testpg.Pgebb(t, pg.Options(database, "transaction", 1))
	for _, params := range [][]string{
		{"options", "-c work_mem=1MB", "work_mem", "2MB"},
		{"work_mem", "2MB", "options", "-c work_mem=1MB"},
		{"work_mem", "2MB", "WORK_MEM", "3MB"},
		{"options", "-c work_mem=1MB --work-mem=4MB"},
		{"options", "-c work_mem=1MB", "options", "-c maintenance_work_mem=5MB"},
		{"options", `-c search_path=a,\ b -c work_mem=\7MB`},
	} {
		show := func(l frontendtest.Login) string {
			l.Params = params
			c := connect(t, l)
			return fmt.Sprint(query(t, c, "SHOW work_mem"), query(t, c, "SHOW maintenance_work_mem"), query(t, c, "SHOW search_path"))
		}
		if theirs, ours := show(direct(pg, database)), show(through(p, database)); theirs != ours {
			t.Errorf("%q: Postgres %s, pgebb %s", params, theirs, ours)
		}
	}
}
