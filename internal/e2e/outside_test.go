package e2e

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/pgebb/pgebb/frontend/frontendtest"
	"github.com/pgebb/pgebb/internal/testpg"
)

// This file is about users whose passwords are in no file.

// verifierOf is what Postgres keeps of a role's password.
func verifierOf(t *testing.T, pg *testpg.Server, role string) string {
	t.Helper()
	admin := frontendtest.Login{Network: "tcp", Address: fmt.Sprintf("%s:%d", pg.Host, pg.Port), User: pg.User, Password: pg.Password, Database: "postgres"}
	return query(t, connect(t, admin), "SELECT rolpassword FROM pg_authid WHERE rolname = '"+role+"'")[0]
}

func TestSCRAMLoginsAreGoodForServersWithTheSameVerifier(t *testing.T) {
	pg := testpg.ForTest(t)
	database := pg.Database(t)
	o := pg.Options(database, "transaction", 2)
	o.Users = fmt.Sprintf("[[users]]\nname = %q\npassword_hash = %q\ndatabase = %q\n", database, verifierOf(t, pg, database), database)
	p := testpg.Pgebb(t, o)
	if got := query(t, connect(t, through(p, database)), "SELECT current_user"); got[0] != database {
		t.Errorf("in Postgres the client is %s", got[0])
	}
	l := through(p, database)
	l.Password = "wrong"
	if _, err := frontendtest.Connect(l); code(err) != "28P01" {
		t.Errorf("with a wrong password: %v", err)
	}
	query(t, connect(t, through(p, database)), "SELECT 1")
	epilogue(t, pg, p, database, 2)

	// Another verifier of the same password.
	pg.Exec(t, "postgres", fmt.Sprintf("ALTER ROLE %s PASSWORD '%s'", database, database))
	q := testpg.Pgebb(t, o)
	_, err := frontendtest.Connect(through(q, database))
	inLogOnly(t, q, err, "the server has another SCRAM verifier for the user than the one that its clients log in with")
}

func TestPasswordsArePassedOn(t *testing.T) {
	k := newPKI(t, 0)
	pg := testpg.ForTest(t)
	for _, c := range []struct {
		value                string
		plain, encrypted     bool // is let in
		changed, changedBack string
	}{
		{"disabled", false, false, "28P01", "28P01"},
		{"enabled", false, true, "28P01", ""},
		{"enabled_plain", true, true, "28P01", ""},
		{"enabled_allow_change", false, true, "", "28P01"},
		{"enabled_plain_allow_change", true, true, "", "28P01"},
	} {
		t.Run(c.value, func(t *testing.T) {
			database := pg.Database(t)
			o := pg.Options(database, "transaction", 2)
			o.General += k.general() + fmt.Sprintf("passthrough_auth = %q\n", c.value)
			o.Users = ""
			p := testpg.Pgebb(t, o)
			wrong := k.encrypted(p, database)
			wrong.Password = "wrong"
			if _, err := frontendtest.Connect(wrong); code(err) != "28P01" {
				t.Errorf("a wrong password before: %v", err)
			}
			expectLogin(t, "without TLS", through(p, database), c.plain)
			expectLogin(t, "with TLS", k.encrypted(p, database), c.encrypted)
			if _, err := frontendtest.Connect(wrong); code(err) != "28P01" {
				t.Errorf("a wrong password after: %v", err)
			}
			expectLogin(t, "with TLS", k.encrypted(p, database), c.encrypted)
			pg.Exec(t, "postgres", fmt.Sprintf("ALTER ROLE %s PASSWORD 'changed'", database))
			changed := k.encrypted(p, database)
			changed.Password = "changed"
			if _, err := frontendtest.Connect(changed); code(err) != c.changed {
				t.Errorf("another password that is right: %v, want %q", err, c.changed)
			}
			if c.changed == "" {
				if _, err := frontendtest.Connect(k.encrypted(p, database)); code(err) != c.changedBack {
					t.Errorf("the old password: %v, want %q", err, c.changedBack)
				}
				expectLogin(t, "with the new password", changed, true)
			}
		})
	}
}

func expectLogin(t *testing.T, what string, l frontendtest.Login, works bool) {
	t.Helper()
	c, err := frontendtest.Connect(l)
	if (err == nil) != works {
		t.Errorf("%s: %v", what, err)
	}
	if err == nil {
		query(t, c, "SELECT 1")
		c.Close()
	}
}

// looksUp are the lines of [general] by which a pgebb looks users up as the superuser.
func looksUp(pg *testpg.Server) string {
	return fmt.Sprintf("auth_user = %q\nauth_password = %q\nfailed_login_delay = 0\n", pg.User, pg.Password)
}

func TestUsersAreLookedUp(t *testing.T) {
	pg := testpg.ForTest(t)
	database := pg.Database(t)
	o := pg.Options(database, "transaction", 2)
	o.General += looksUp(pg)
	o.Users = ""
	p := testpg.Pgebb(t, o)
	for range 3 {
		if got := query(t, connect(t, through(p, database)), "SELECT current_user"); got[0] != database {
			t.Errorf("in Postgres the client is %s", got[0])
		}
	}
	try := func(what, user, password, want string) {
		t.Helper()
		l := frontendtest.Login{Network: "tcp", Address: p.Address(), User: user, Password: password, Database: database}
		c, err := frontendtest.Connect(l)
		if err == nil {
			c.Close()
		}
		if code(err) != want {
			t.Errorf("%s: %v, want %q", what, err, want)
		}
	}
	role := func(what string) string {
		name := testpg.Name("r")
		pg.Exec(t, "postgres", fmt.Sprintf("CREATE ROLE %s LOGIN PASSWORD 'secret'", name), fmt.Sprintf("ALTER ROLE %s %s", name, what))
		t.Cleanup(func() { pg.Exec(t, "postgres", "DROP ROLE "+name) })
		return name
	}
	try("a wrong password", database, "wrong", "28P01")
	try("the right one after it", database, database, "")
	try("nobody", "nobody_"+database, "x", "28P01")
	try("a role that expires", role("VALID UNTIL 'tomorrow'"), "secret", "")
	try("a role that does not", role("VALID UNTIL 'infinity'"), "secret", "")
	try("an expired role", role("VALID UNTIL 'yesterday'"), "secret", "28P01")
	try("a role that may not log in", role("NOLOGIN"), "secret", "28P01")
	try("a role without a password", role("PASSWORD NULL"), "", "28P01")
	soon := role(fmt.Sprintf("VALID UNTIL '%s'", time.Now().Add(2*time.Second).UTC().Format("2006-01-02 15:04:05.000Z07:00")))
	try("a role that expires soon", soon, "secret", "")
	eventually(t, 10*time.Second, func() string { // from what is known already
		l := frontendtest.Login{Network: "tcp", Address: p.Address(), User: soon, Password: "secret", Database: database}
		c, err := frontendtest.Connect(l)
		if err == nil {
			c.Close()
			return "it is still let in"
		}
		return ""
	})
	pg.Exec(t, "postgres", fmt.Sprintf("ALTER ROLE %s PASSWORD 'changed'", database))
	eventually(t, 10*time.Second, func() string { // once it is looked up again after a wrong password
		l := through(p, database)
		l.Password = "changed"
		c, err := frontendtest.Connect(l)
		if err != nil {
			return err.Error()
		}
		c.Close()
		return ""
	})
}

func TestLookUpsDependOnNoClient(t *testing.T) {
	pg := testpg.ForTest(t)
	database := pg.Database(t)
	// A schema with functions of the same names, which nobody is to call.
	pg.Exec(t, database, "CREATE SCHEMA evil", "CREATE TABLE evil.pg_authid (rolname name, rolpassword text, rolvaliduntil timestamptz, rolcanlogin bool)",
		"INSERT INTO evil.pg_authid VALUES ('"+database+"', 'stolen', NULL, true)", "ALTER DATABASE "+database+" SET search_path = evil, pg_catalog")
	o := pg.Options(database, "transaction", 2)
	o.General += looksUp(pg) + "auth_query = \"SELECT rolname, rolpassword FROM pg_authid WHERE rolname = $1\"\n"
	o.Users = ""
	p := testpg.Pgebb(t, o)
	l := through(p, database)
	l.Params = []string{"search_path", "evil, pg_catalog", "options", "-c search_path=evil"}
	query(t, connect(t, l), "SELECT 1")
	l.Password = "stolen"
	if _, err := frontendtest.Connect(l); code(err) != "28P01" {
		t.Errorf("with the password of another table: %v", err)
	}
}

func TestLookUpsThatFail(t *testing.T) {
	pg := testpg.ForTest(t)
	database := pg.Database(t)
	for name, c := range map[string]struct{ general, want string }{
		"a wrong password":   {fmt.Sprintf("auth_user = %q\nauth_password = \"wrong\"\n", pg.User), "password authentication failed"},
		"an error":           {looksUp(pg) + "auth_query = \"SELECT nothing\"\n", "column \"nothing\" does not exist"},
		"no parameter":       {looksUp(pg) + "auth_query = \"SELECT 1, 2\"\n", "another user"},
		"one column":         {looksUp(pg) + "auth_query = \"SELECT $1\"\n", "auth_query returns 1 columns"},
		"another user":       {looksUp(pg) + "auth_query = \"SELECT $1 || 'x', 'y'\"\n", "another user"},
		"two rows":           {looksUp(pg) + "auth_query = \"SELECT $1, x FROM (VALUES ('a'), ('b')) AS y(x)\"\n", "more than one row"},
		"no number":          {looksUp(pg) + "auth_query = \"SELECT $1, 'a', 'never'\"\n", "no number of seconds"},
		"a very long answer": {looksUp(pg) + "auth_query = \"SELECT $1, repeat('x', 1000000)\"\n", "more than 65536 bytes"},
	} {
		t.Run(strings.ReplaceAll(name, " ", "-"), func(t *testing.T) {
			o := pg.Options(database, "transaction", 2)
			o.General += c.general
			o.Users = ""
			p := testpg.Pgebb(t, o)
			_, err := frontendtest.Connect(through(p, database))
			if code(err) != "58000" {
				t.Errorf("the client is told %v", err)
			}
			inLogOnly(t, p, err, c.want)
		})
	}
}

func TestCertificatesInPlaceOfPasswords(t *testing.T) {
	k := newPKI(t, 0)
	stranger := newPKI(t, 0)
	pg := testpg.ForTest(t)
	database := pg.Database(t)
	o := pg.Options(database, "transaction", 2)
	o.General += k.general() + fmt.Sprintf("tls_client_ca_certificate = %q\nfailed_login_delay = 0\n", k.ca)
	user := func(name, more string) string {
		return fmt.Sprintf("[[users]]\nname = %q\ndatabase = %q\nserver_user = %q\nserver_password = %q\n%s\n", name, database, database, database, more)
	}
	o.Users = user("ann", `identity = "ann"`) + user("bob", `identity = "bob"`) + user("cid", "password = \"secret\"") +
		user("dan", "password = \"secret\"\ntls_client_certificate_required = false") + user("eve", "identity = \"ann\"\npassword = \"secret\"\ntls_client_certificate_required = false")
	p := testpg.Pgebb(t, o)
	for _, c := range []struct {
		user, certificate, password, want string
	}{
		{"ann", "ann", "", ""},
		{"ann", "", "", "28000"},
		{"bob", "ann", "", "28P01"},
		{"cid", "ann", "secret", ""},
		{"cid", "ann", "wrong", "28P01"},
		{"cid", "", "secret", "28000"},
		{"dan", "", "secret", ""},
		{"dan", "ann", "secret", ""},
		{"eve", "ann", "", ""},
		{"eve", "", "secret", ""},
		{"eve", "", "wrong", "28P01"},
		{"nobody", "", "secret", "28000"},
		{"nobody", "ann", "secret", "28P01"},
	} {
		env := []string{"PGUSER=" + c.user, "PGPASSWORD=" + c.password, "PGSSLMODE=verify-full", "PGSSLROOTCERT=" + k.ca, "PGSSLCERT=/nowhere", "PGSSLKEY=/nowhere"}
		if c.certificate != "" {
			env = append(env, "PGSSLCERT="+k.client, "PGSSLKEY="+k.clientKy)
		}
		out, err := try(p, database, env, program(t, "psql"), "-X", "-At", "-v", "VERBOSITY=sqlstate", "-w", "-c", "SELECT 1")
		if (err == nil) != (c.want == "") {
			t.Errorf("%s with the certificate %q and the password %q: %s", c.user, c.certificate, c.password, out)
		}
	}
	out, err := try(p, database, []string{"PGUSER=ann", "PGSSLMODE=require", "PGSSLCERT=" + stranger.client, "PGSSLKEY=" + stranger.clientKy}, program(t, "psql"), "-X", "-w", "-c", "SELECT 1")
	if err == nil {
		t.Errorf("somebody with a certificate of another authority is let in: %s", out)
	}
	l := frontendtest.Login{Network: "tcp", Address: p.Address(), User: "cid", Password: "secret", Database: database}
	if _, err := frontendtest.Connect(l); code(err) != "28000" {
		t.Errorf("without TLS: %v", err)
	}
	query(t, console(t, p), "SHOW VERSION")
}

func TestServersAreShownTheCertificateOfPgebb(t *testing.T) {
	k := newPKI(t, 0)
	pg := k.postgres(t, certificateFor("127.0.0.1"))
	database := pg.Database(t)
	o := pg.Options(database, "transaction", 2)
	o.General += fmt.Sprintf("tls_verify = \"verify_full\"\ntls_server_ca_certificate = %q\ntls_server_certificate = %q\ntls_server_private_key = %q\n", k.ca, k.client, k.clientKy)
	p := testpg.Pgebb(t, o)
	if got := query(t, connect(t, through(p, database)), "SELECT client_dn FROM pg_stat_ssl WHERE pid = pg_backend_pid()"); got[0] != "/CN=ann" {
		t.Errorf("Postgres sees %q", got[0])
	}
}

func TestManyWrongPasswordsAtOnceHoldNobodyUp(t *testing.T) {
	pg := testpg.ForTest(t)
	database := pg.Database(t)
	o := pg.Options(database, "transaction", 2)
	o.General += "failed_login_delay = 60000\n"
	p := testpg.Pgebb(t, o)
	c := connect(t, through(p, database))
	for range 20 { // each will be told in a minute
		wrong, err := frontendtest.Dial("tcp", p.Address())
		if err != nil {
			t.Fatal(err)
		}
		defer wrong.Close()
		l := through(p, database)
		l.Password = "wrong"
		go func() { _ = wrong.Login(l) }()
	}
	query(t, c, "SELECT 1")
	query(t, connect(t, through(p, database)), "SELECT 1")
}
