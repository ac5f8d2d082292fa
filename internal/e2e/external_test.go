package e2e

import (
	"crypto/tls"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pgebb/pgebb/frontend/frontendtest"
	"github.com/pgebb/pgebb/internal/testcert"
	"github.com/pgebb/pgebb/internal/testpg"
	"github.com/pgebb/pgebb/internal/wire"
)

// This file is about servers whose credentials are in no file (server_auth).

// vault is a Vault that knows one AppRole, and answers what is read as its handler says.
type vault struct {
	*httptest.Server
	mu     sync.Mutex
	logins int
	reads  int
	read   func(path string, n int) (status int, answer string) // the nth; guarded by mu
}

// secretID is what pgebb shows it, and no log may have.
const secretID = "the-secret-id-of-pgebb"

func startVault(t *testing.T, read func(path string, n int) (int, string)) *vault {
	v := &vault{read: read}
	v.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		v.mu.Lock()
		defer v.mu.Unlock()
		if r.Method == "POST" && r.URL.Path == "/v1/auth/approle/login" {
			var given map[string]string
			if json.NewDecoder(r.Body).Decode(&given) != nil || given["role_id"] != "pgebb" || given["secret_id"] != secretID {
				w.WriteHeader(http.StatusBadRequest)
				return
			}
			v.logins++
			fmt.Fprint(w, `{"auth":{"client_token":"token-of-vault","lease_duration":3600}}`)
			return
		}
		if r.Header.Get("X-Vault-Token") != "token-of-vault" {
			w.WriteHeader(http.StatusForbidden)
			return
		}
		v.reads++
		status, answer := v.read(strings.TrimPrefix(r.URL.Path, "/v1/"), v.reads)
		w.WriteHeader(status)
		fmt.Fprint(w, answer)
	}))
	t.Cleanup(v.Close)
	return v
}

// counts are how many logins and reads there were.
func (v *vault) counts() (logins, reads int) {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.logins, v.reads
}

// config is [vault] for it.
func (v *vault) config() string {
	return fmt.Sprintf("[vault]\nurl = %q\nauth_method = \"approle\"\napprole_role_id = \"pgebb\"\n", v.URL)
}

func staticAnswer(password string, ttl int) string {
	return fmt.Sprintf(`{"lease_duration":0,"data":{"username":"ignored","password":%q,"ttl":%d}}`, password, ttl)
}

// withVault are options by which servers of a database's owner are logged in with what a Vault has;
// its clients have a password of their own.
func withVault(pg *testpg.Server, v *vault, database, user string) testpg.Options {
	o := pg.Options(database, "transaction", 3)
	o.Config += v.config()
	o.Users = fmt.Sprintf("[[users]]\nname = \"client\"\npassword = \"of clients\"\ndatabase = %q\n%s", database, user)
	o.Env = []string{"VAULT_SECRET_ID=" + secretID}
	return o
}

func asClient(p *testpg.Process, database string) frontendtest.Login {
	return frontendtest.Login{Network: "tcp", Address: p.Address(), User: "client", Password: "of clients", Database: database}
}

// tellsNone fails if a log has a secret.
func tellsNone(t *testing.T, p *testpg.Process, secrets ...string) {
	t.Helper()
	for _, s := range append(secrets, secretID, "token-of-vault") {
		if strings.Contains(p.Log(), s) {
			t.Errorf("the log has the secret %q:\n%s", s, p.Log())
		}
	}
}

// TestStaticPasswordsOfVault has a role whose password Vault changes from time to time.
func TestStaticPasswordsOfVault(t *testing.T) {
	t.Parallel()
	pg := testpg.ForTest(t)
	database := pg.Database(t)
	var password atomic.Value
	password.Store(database)
	v := startVault(t, func(path string, _ int) (int, string) {
		if path != "database/static-creds/app" {
			return 403, `{"errors":["permission denied"]}`
		}
		return 200, staticAnswer(password.Load().(string), 3600)
	})
	user := fmt.Sprintf("server_user = %q\nserver_auth = \"vault_static\"\nserver_vault_path = \"database/static-creds/app\"\n", database)
	o := withVault(pg, v, database, user)
	p := testpg.Pgebb(t, o)
	var clients []*frontendtest.Client
	for range 3 { // three servers at once
		c := connect(t, asClient(p, database))
		query(t, c, "BEGIN")
		clients = append(clients, c)
	}
	for _, c := range clients {
		if got := query(t, c, "SELECT current_user"); got[0] != database {
			t.Errorf("in Postgres the client is %s", got[0])
		}
		query(t, c, "COMMIT")
	}
	if logins, reads := v.counts(); logins != 1 || reads != 1 {
		t.Errorf("for three servers there were %d logins and %d reads", logins, reads)
	}

	// The password is changed before its time.
	password.Store("another-password-of-vault")
	pg.Exec(t, "postgres", fmt.Sprintf("ALTER ROLE %s PASSWORD 'another-password-of-vault'", database))
	if _, err := console(t, p).Query("RECONNECT"); err != nil {
		t.Fatal(err)
	}
	eventually(t, 10*time.Second, func() string {
		c, err := frontendtest.Connect(asClient(p, database))
		if err != nil {
			return err.Error()
		}
		defer c.Close()
		if _, err := c.Query("SELECT 1"); err != nil {
			return err.Error()
		}
		return ""
	})
	if _, reads := v.counts(); reads != 2 {
		t.Errorf("after it was changed there were %d reads in all", reads)
	}

	// A path that Vault does not let pgebb read, by a reload.
	o.Users = strings.Replace(o.Users, "static-creds/app", "static-creds/other", 1)
	if err := p.Configure(o); err != nil {
		t.Fatal(err)
	}
	if _, err := console(t, p).Query("RELOAD"); err != nil {
		t.Fatal(err)
	}
	_, err := frontendtest.Connect(asClient(p, database))
	if err == nil {
		_, err = connect(t, asClient(p, database)).Query("SELECT 1")
	}
	if code(err) != "58000" || !strings.Contains(err.Error(), "the pooler has no credentials for Postgres") {
		t.Errorf("the client is told %v", err)
	}
	inLogOnly(t, p, err, "/v1/database/static-creds/other answers 403 Forbidden: permission denied")
	tellsNone(t, p, "another-password-of-vault")
}

// TestDynamicUsersOfVault has Vault make a role for pgebb, as it does, and replace it when
// its time is up. The old one must not have any server then.
func TestDynamicUsersOfVault(t *testing.T) {
	t.Parallel()
	k := newPKI(t, 0)
	pg := k.postgres(t, testcert.Options{CommonName: "127.0.0.1"})
	database := pg.Database(t)
	v := startVault(t, func(path string, n int) (int, string) {
		if path != "database/creds/app" {
			return 404, `{"errors":[]}`
		}
		role := fmt.Sprintf("v_app_%d", n)
		pg.Exec(t, "postgres", fmt.Sprintf("CREATE ROLE %s LOGIN PASSWORD 'password-of-%s'", role, role))
		return 200, fmt.Sprintf(`{"lease_id":"l","lease_duration":4,"renewable":true,"data":{"username":%q,"password":"password-of-%s"}}`, role, role)
	})
	o := withVault(pg, v, database, "server_auth = \"vault_dynamic\"\nserver_vault_path = \"database/creds/app\"\nvault_refresh_percent = 50\n")
	o.General += fmt.Sprintf("tls_verify = \"verify_full\"\ntls_server_ca_certificate = %q\n", k.ca)
	p := testpg.Pgebb(t, o)
	c := connect(t, asClient(p, database))
	query(t, c, "BEGIN")
	first := query(t, c, "SELECT session_user")[0]
	if !strings.HasPrefix(first, "v_app_") || query(t, c, isEncrypted)[0] != "t" {
		t.Errorf("in Postgres the client is %s", first)
	}
	if rows := show(t, p, "SHOW SERVERS"); len(rows) == 0 || rows[0]["user"] != first {
		t.Errorf("SHOW SERVERS has %v", rows)
	}
	// A transaction keeps its server for as long as it takes.
	eventually(t, 10*time.Second, func() string {
		if _, reads := v.counts(); reads >= 2 {
			return ""
		}
		other := connect(t, asClient(p, database))
		defer other.Close()
		query(t, other, "SELECT 1")
		return "there was no other lease"
	})
	if now := query(t, c, "SELECT session_user")[0]; now != first {
		t.Errorf("in the same transaction the user is %s and then %s", first, now)
	}
	query(t, c, "COMMIT")
	watcher := pg.Conn(t, "postgres")
	eventually(t, 10*time.Second, func() string {
		var left int
		if err := watcher.QueryRow(t.Context(), "SELECT count(*) FROM pg_stat_activity WHERE usename = $1", first).Scan(&left); err != nil {
			return err.Error()
		}
		if left > 0 {
			return fmt.Sprintf("%s has still %d servers", first, left)
		}
		return ""
	})
	if now := query(t, c, "SELECT session_user")[0]; now == first || !strings.HasPrefix(now, "v_app_") {
		t.Errorf("after its time the user is %s", now)
	}
	tellsNone(t, p, "password-of-")
}

// TestVaultThatDoesNotAnswer has clients told so, and the log why. pgebb can be stopped meanwhile.
func TestVaultThatDoesNotAnswer(t *testing.T) {
	pg := testpg.ForTest(t)
	database := pg.Database(t)
	for why, hangs := range map[string]bool{"answers 503 Service Unavailable: Vault is sealed": false, "context deadline exceeded": true} {
		done := make(chan struct{})
		v := startVault(t, func(string, int) (int, string) {
			if hangs {
				<-done
			}
			return 503, `{"errors":["Vault is sealed"]}`
		})
		t.Cleanup(func() { close(done) })
		o := withVault(pg, v, database, "server_auth = \"vault_static\"\nserver_vault_path = \"p\"\n")
		o.General += "checkout_timeout = 1000\nconnect_timeout = 200\n"
		p := testpg.Pgebb(t, o)
		_, err := frontendtest.Connect(asClient(p, database))
		if err == nil {
			_, err = connect(t, asClient(p, database)).Query("SELECT 1")
		}
		if code(err) != "58000" {
			t.Errorf("the client is told %v", err)
		}
		inLogOnly(t, p, err, why)
		tellsNone(t, p)
	}
}

// TestPasswordsOfClientsInVault has clients held to a password that Vault has and changes.
func TestPasswordsOfClientsInVault(t *testing.T) {
	t.Parallel()
	pg := testpg.ForTest(t)
	database := pg.Database(t)
	for _, auth := range []string{"scram", "md5", "plain"} {
		var password atomic.Value
		password.Store("first-password-of-vault")
		v := startVault(t, func(path string, _ int) (int, string) {
			if path != "database/static-creds/client" {
				return 403, `{"errors":["permission denied"]}`
			}
			return 200, staticAnswer(password.Load().(string), 3600)
		})
		o := withVault(pg, v, database, fmt.Sprintf("vault_path = \"database/static-creds/client\"\nserver_user = %q\nserver_password = %q\n", database, database))
		o.General += fmt.Sprintf("auth_type = %q\nfailed_login_delay = 0\n", auth)
		o.Users += fmt.Sprintf("[[users]]\nname = \"other\"\ndatabase = %q\nvault_path = \"database/static-creds/other\"\n", database)
		p := testpg.Pgebb(t, o)
		as := func(password string) frontendtest.Login {
			l := asClient(p, database)
			l.Password = password
			return l
		}
		for range 3 {
			if got := query(t, connect(t, as("first-password-of-vault")), "SELECT current_user"); got[0] != database {
				t.Errorf("%s: in Postgres the client is %s", auth, got[0])
			}
		}
		for _, wrong := range []string{"of clients", database, "wrong"} {
			if _, err := frontendtest.Connect(as(wrong)); code(err) != "28P01" {
				t.Errorf("%s, with the password %q: %v", auth, wrong, err)
			}
		}
		password.Store("second-password-of-vault")
		eventually(t, 10*time.Second, func() string {
			c, err := frontendtest.Connect(as("second-password-of-vault"))
			if err != nil {
				return err.Error()
			}
			c.Close()
			return ""
		})
		if _, err := frontendtest.Connect(as("first-password-of-vault")); code(err) != "28P01" {
			t.Errorf("%s, with the password of before: %v", auth, err)
		}
		l := as("x")
		l.User = "other"
		_, err := frontendtest.Connect(l)
		if code(err) != "58000" {
			t.Errorf("%s: where Vault refuses the client is told %v", auth, err)
		}
		inLogOnly(t, p, err, "permission denied")
		tellsNone(t, p, "first-password", "second-password")
	}
}

// TestUsersAreLookedUpWithCredentialsOfVault has auth_user log in with what is in no file.
func TestUsersAreLookedUpWithCredentialsOfVault(t *testing.T) {
	pg := testpg.ForTest(t)
	database := pg.Database(t)
	v := startVault(t, func(string, int) (int, string) { return 200, staticAnswer(pg.Password, 3600) })
	o := withVault(pg, v, database, fmt.Sprintf("server_user = %q\nserver_auth = \"vault_static\"\nserver_vault_path = \"p\"\n", pg.User))
	o.General += "auth_user = \"client\"\n"
	p := testpg.Pgebb(t, o)
	if got := query(t, connect(t, through(p, database)), "SELECT current_user"); got[0] != database {
		t.Errorf("in Postgres the client is %s", got[0])
	}
}

// asksInClear is a Postgres that lets in whose password it likes, which it asks for in clear text, over TLS or not.
type asksInClear struct {
	net.Listener
	cert      *tls.Certificate // nil for no TLS
	passwords chan string      // that were given
}

func startAsking(t *testing.T, cert *tls.Certificate) *asksInClear {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	a := &asksInClear{ln, cert, make(chan string, 100)}
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			conn, err := ln.Accept()
			if err != nil {
				return
			}
			wg.Go(func() {
				defer conn.Close()
				_ = a.serve(conn) // it ends with the connection
			})
		}
	})
	t.Cleanup(func() { ln.Close(); wg.Wait() })
	return a
}

func (a *asksInClear) serve(conn net.Conn) error {
	start := func() (uint32, error) {
		var head [8]byte
		if _, err := io.ReadFull(conn, head[:]); err != nil {
			return 0, err
		}
		_, err := io.CopyN(io.Discard, conn, int64(binary.BigEndian.Uint32(head[:]))-8)
		return binary.BigEndian.Uint32(head[4:]), err
	}
	message := func() (byte, []byte, error) {
		var head [wire.HeaderSize]byte
		if _, err := io.ReadFull(conn, head[:]); err != nil {
			return 0, nil, err
		}
		typ, size := wire.Header(head[:])
		body := make([]byte, size-wire.HeaderSize)
		_, err := io.ReadFull(conn, body)
		return typ, body, err
	}
	code, err := start()
	if err == nil && code == wire.SSLRequestCode {
		if a.cert == nil {
			_, _ = conn.Write([]byte("N"))
		} else {
			_, _ = conn.Write([]byte("S"))
			conn = tls.Server(conn, &tls.Config{Certificates: []tls.Certificate{*a.cert}})
		}
		_, err = start()
	}
	if err != nil {
		return err
	}
	_, _ = conn.Write(wire.AppendRaw(nil, wire.Authentication, []byte{0, 0, 0, 3}))
	_, body, err := message()
	if err != nil {
		return err
	}
	a.passwords <- strings.TrimSuffix(string(body), "\x00")
	ready := wire.AppendRaw(nil, wire.Authentication, []byte{0, 0, 0, 0})
	ready = wire.AppendParameterStatus(ready, "server_version", "15.0")
	_, err = conn.Write(wire.AppendReadyForQuery(ready, wire.Idle))
	for err == nil {
		var typ byte
		if typ, _, err = message(); typ == wire.Query {
			answer := wire.AppendRaw(nil, wire.CommandComplete, []byte("SELECT 0\x00"))
			_, err = conn.Write(wire.AppendReadyForQuery(answer, wire.Idle))
		}
	}
	return err
}

// rdsOptions are those of a pgebb before a database that is on RDS.
func rdsOptions(a *asksInClear, general string) testpg.Options {
	return testpg.Options{
		General: "default_pool_size = 2\nquery_parser = \"off\"\ncheckout_timeout = 2000\n" + general,
		Config:  fmt.Sprintf("[[databases]]\nname = \"app\"\nhost = \"127.0.0.1\"\nport = %d\n", a.Addr().(*net.TCPAddr).Port),
		Users:   "[[users]]\nname = \"client\"\npassword = \"of clients\"\ndatabase = \"app\"\nserver_user = \"iam user\"\nserver_auth = \"rds_iam\"\nserver_iam_region = \"eu-west-1\"\nmin_pool_size = 0\n",
		Env:     []string{"AWS_ACCESS_KEY_ID=THE-KEY", "AWS_SECRET_ACCESS_KEY=key-that-is-secret", "AWS_SESSION_TOKEN=session-that-is-secret", "AWS_REGION=us-east-1"},
	}
}

// TestTokensOfRDS has a server asked for its password in clear text, as RDS does.
func TestTokensOfRDS(t *testing.T) {
	k := newPKI(t, 0)
	cert := k.issue(t, testcert.Options{CommonName: "127.0.0.1"}).TLS()
	a := startAsking(t, &cert)
	p := testpg.Pgebb(t, rdsOptions(a, fmt.Sprintf("tls_verify = \"verify_full\"\ntls_server_ca_certificate = %q\n", k.ca)))
	c := connect(t, asClient(p, "app"))
	query(t, c, "SELECT 1")
	token := <-a.passwords
	start := fmt.Sprintf("%s/?Action=connect&DBUser=iam%%20user&X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential=THE-KEY%%2F", a.Addr())
	if !strings.HasPrefix(token, start) || !strings.Contains(token, "%2Feu-west-1%2Frds-db%2Faws4_request&X-Amz-Date=") ||
		!strings.Contains(token, "&X-Amz-Expires=900&X-Amz-Security-Token=session-that-is-secret&X-Amz-SignedHeaders=host&X-Amz-Signature=") {
		t.Errorf("the server is given %q", token)
	}
	_, signature, _ := strings.Cut(token, "X-Amz-Signature=")
	tellsNone(t, p, "key-that-is-secret", "session-that-is-secret", signature)
}

// TestTokensAreNotSentWithoutEncryption has a server that has none, where it is only preferred.
func TestTokensAreNotSentWithoutEncryption(t *testing.T) {
	a := startAsking(t, nil)
	p := testpg.Pgebb(t, rdsOptions(a, "tls_verify = \"prefer\"\n"))
	_, err := frontendtest.Connect(asClient(p, "app"))
	if err == nil {
		_, err = connect(t, asClient(p, "app")).Query("SELECT 1")
	}
	if code(err) != "58000" {
		t.Errorf("the client is told %v", err)
	}
	inLogOnly(t, p, err, "the server has no TLS")
	select {
	case token := <-a.passwords:
		t.Errorf("the server is given %q without encryption", token)
	default:
	}
}
