package e2e

import (
	"context"
	"crypto/md5"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pgebb/pgebb/frontend/frontendtest"
	"github.com/pgebb/pgebb/internal/testcert"
	"github.com/pgebb/pgebb/internal/testpg"
	"github.com/pgebb/pgebb/internal/wire"
)

// pki is the certificates of a test.
type pki struct {
	authority        *testcert.Authority
	cert, key, ca    string // files of pgebb's
	client, clientKy string // files of a client's, for the common name "ann"
}

// newPKI makes certificates of an authority that signs with an algorithm; 0 is the usual
// one.
func newPKI(t *testing.T, algorithm x509.SignatureAlgorithm) *pki {
	t.Helper()
	authority, err := testcert.New(algorithm)
	if err != nil {
		t.Fatal(err)
	}
	k := &pki{authority: authority}
	k.cert, k.key, k.ca = testpg.CertificateFiles(t, k.issue(t, testcert.Options{CommonName: "pgebb", Names: []string{"localhost"}, IPs: []string{"127.0.0.1"}, Algorithm: algorithm}), authority)
	k.client, k.clientKy, _ = testpg.CertificateFiles(t, k.issue(t, testcert.Options{CommonName: "ann", Algorithm: algorithm}), authority)
	return k
}

func (k *pki) issue(t *testing.T, o testcert.Options) *testcert.Certificate {
	t.Helper()
	c, err := k.authority.Issue(o)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// general is the lines of [general] that encrypt the connections of clients.
func (k *pki) general() string {
	return fmt.Sprintf("tls_certificate = %q\ntls_private_key = %q\n", k.cert, k.key)
}

// config is a client's.
func (k *pki) config() *tls.Config {
	return &tls.Config{RootCAs: k.authority.Pool(), ServerName: "localhost", NextProtos: []string{"postgresql"}}
}

// postgres starts one with TLS and a certificate for 127.0.0.1.
func (k *pki) postgres(t *testing.T, o testcert.Options) *testpg.Server {
	t.Helper()
	pg, err := testpg.Start(testpg.TLS(t, k.issue(t, o), k.authority)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pg.Stop)
	return pg
}

// certificateFor is a certificate for one host.
func certificateFor(host string) testcert.Options { return testcert.Options{CommonName: host} }

// encrypted is through with TLS.
func (k *pki) encrypted(p *testpg.Process, database string) frontendtest.Login {
	l := through(p, database)
	l.TLS = k.config()
	return l
}

const isEncrypted = "SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()"

func TestTLSOnBothSides(t *testing.T) {
	k := newPKI(t, 0)
	pg := k.postgres(t, testcert.Options{CommonName: "127.0.0.1"})
	for _, verify := range []string{"disabled", "prefer", "verify_ca", "verify_full"} {
		t.Run(verify, func(t *testing.T) {
			database := pg.Database(t)
			o := pg.Options(database, "transaction", 2)
			o.General += k.general() + fmt.Sprintf("tls_verify = %q\ntls_client_required = true\n", verify)
			if verify != "disabled" {
				o.General += fmt.Sprintf("tls_server_ca_certificate = %q\n", k.ca)
			}
			p := testpg.Pgebb(t, o)
			want := map[bool]string{true: "f", false: "t"}[verify == "disabled"]
			for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
				l := k.encrypted(p, database)
				l.TLS.MinVersion, l.TLS.MaxVersion = version, version
				c := connect(t, l)
				if got := query(t, c, isEncrypted); got[0] != want {
					t.Errorf("%s: in Postgres the connection is encrypted: %s", tls.VersionName(version), got[0])
				}
				testTLSIsShown(t, k, p, version, want == "t")
				c.Close()
			}
			testTLSWithDrivers(t, k, p, database)
		})
	}
}

// testTLSIsShown looks at what the console says of the one client and the one server.
func testTLSIsShown(t *testing.T, k *pki, p *testpg.Process, version uint16, server bool) {
	t.Helper()
	operator := frontendtest.Login{Network: "tcp", Address: p.Address(), User: "admin", Password: testpg.AdminPassword, Database: "pgbouncer", TLS: k.config()}
	rows, err := connect(t, operator).Table("SHOW SOCKETS")
	if err != nil || len(rows) < 2 {
		t.Fatalf("SHOW SOCKETS has %v, %v", rows, err)
	}
	for _, row := range rows {
		want := "TLSv1.3/TLS_"
		switch {
		case row["type"] == "C" && version == tls.VersionTLS12:
			want = "TLSv1.2/TLS_"
		case row["type"] == "S" && !server:
			want = ""
		}
		if (want == "") != (row["tls"] == "") || !strings.HasPrefix(row["tls"], want) || row["local_addr"] != "127.0.0.1" {
			t.Errorf("SHOW SOCKETS has %q, want %q in the column tls", row, want)
		}
	}
}

// testTLSWithDrivers has clients of other make log in with all that they can check.
func testTLSWithDrivers(t *testing.T, k *pki, p *testpg.Process, database string) {
	env := []string{"PGSSLMODE=verify-full", "PGSSLROOTCERT=" + k.ca, "PGCHANNELBINDING=require", "NODE_EXTRA_CA_CERTS=" + k.ca}
	out := runsWith(t, p, database, env, program(t, "psql"), "-X", "-At", "-c", "SELECT 6*7")
	if out != "42\n" {
		t.Errorf("psql prints %s", out)
	}
	out = runsWith(t, p, database, env, "/usr/bin/python3", filepath.Join(testpg.Root(), "internal/e2e/python/drive.py"))
	if !strings.Contains(out, "all is well") {
		t.Errorf("python prints %s", out)
	}
	out = runsWith(t, p, database, env, "node", filepath.Join(testpg.Root(), "internal/e2e/node/drive.js"))
	if !strings.Contains(out, "all is well") {
		t.Errorf("node prints %s", out)
	}
	url := fmt.Sprintf("postgres://%s:%s@%s/%s?sslmode=verify-full&sslrootcert=%s&pool_max_conns=6", database, database, p.Address(), database, k.ca)
	db, err := pgxpool.New(context.Background(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if err := usePgx(context.Background(), db); err != nil {
		t.Errorf("pgx: %v", err)
	}
}

// runsWith is runs with more in the environment.
func runsWith(t *testing.T, p *testpg.Process, database string, env []string, name string, args ...string) string {
	t.Helper()
	out, err := try(p, database, env, name, args...)
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
	return out
}

func try(p *testpg.Process, database string, env []string, name string, args ...string) (string, error) {
	cmd := exec.Command(name, args...)
	cmd.Env = append(os.Environ(), append([]string{"PGHOST=" + p.Host, fmt.Sprintf("PGPORT=%d", p.Port), "PGUSER=" + database, "PGPASSWORD=" + database,
		"PGDATABASE=" + database, "PGEBB_ADMIN_PASSWORD=" + testpg.AdminPassword}, env...)...)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func TestServersThatAreNotTrusted(t *testing.T) {
	k, other := newPKI(t, 0), newPKI(t, 0)
	plain := testpg.ForTest(t)
	named := k.postgres(t, testcert.Options{CommonName: "127.0.0.1", IPs: []string{"127.0.0.2"}})
	for _, c := range []struct {
		name, verify, ca string
		pg               *testpg.Server
		want             string // in the log of the error; empty for none
	}{
		{"another host and verify_ca", "verify_ca", k.ca, named, ""},
		{"another host", "verify_full", k.ca, named, "certificate is valid for 127.0.0.2, not 127.0.0.1"},
		{"another authority", "verify_ca", other.ca, named, "certificate signed by unknown authority"},
		{"another authority and prefer", "prefer", other.ca, named, ""},
		{"no TLS", "verify_ca", k.ca, plain, `the server has no TLS, which tls_verify = "verify_ca" demands`},
		{"no TLS and prefer", "prefer", k.ca, plain, ""},
	} {
		t.Run(strings.ReplaceAll(c.name, " ", "-"), func(t *testing.T) {
			database := c.pg.Database(t)
			o := c.pg.Options(database, "transaction", 2)
			o.General += fmt.Sprintf("tls_verify = %q\ntls_server_ca_certificate = %q\ncheckout_timeout = 500\n", c.verify, c.ca)
			p := testpg.Pgebb(t, o)
			_, err := frontendtest.Connect(through(p, database))
			switch {
			case c.want != "":
				inLogOnly(t, p, err, c.want)
			case err != nil:
				t.Error(err)
			}
		})
	}
}

func TestClientsWithoutTLSWhereItIsRequired(t *testing.T) {
	k := newPKI(t, 0)
	pg := testpg.ForTest(t)
	database := pg.Database(t)
	o := pg.Options(database, "transaction", 2)
	o.General += k.general() + "tls_client_required = true\n"
	p := testpg.Pgebb(t, o)
	if _, err := frontendtest.Connect(through(p, database)); code(err) != "08004" {
		t.Errorf("without TLS: %v", err)
	}
	l := through(p, database)
	l.Network, l.Address = "unix", filepath.Join(p.Dir, ".s.PGSQL."+strconv.Itoa(p.Port))
	query(t, connect(t, l), "SELECT 1")
	l.TLS = k.config()
	if _, err := frontendtest.Connect(l); err == nil || !strings.Contains(err.Error(), "'N'") {
		t.Errorf("TLS at the Unix socket: %v", err)
	}
	c := connect(t, k.encrypted(p, database))
	query(t, c, "SELECT 1")
	testCancelWithAndWithoutTLS(t, k, p, c)
}

// testCancelWithAndWithoutTLS has a client's query cancelled by each kind of request; older
// clients do not encrypt them.
func testCancelWithAndWithoutTLS(t *testing.T, k *pki, p *testpg.Process, c *frontendtest.Client) {
	for _, encrypt := range []bool{true, false} {
		done := make(chan error, 1)
		go func() { _, err := c.Query("SELECT pg_sleep(60)"); done <- err }()
		eventually(t, 10*time.Second, func() string {
			canceller, err := frontendtest.Dial("tcp", p.Address())
			if err != nil {
				return err.Error()
			}
			defer canceller.Close()
			if encrypt {
				if err := canceller.Encrypt(k.config(), false); err != nil {
					return err.Error()
				}
			}
			_ = canceller.Send(wire.AppendCancelRequest(nil, c.PID, c.Secret))
			_, _ = io.ReadAll(canceller)
			select {
			case err := <-done:
				if code(err) != "57014" {
					t.Errorf("the cancelled query ends with %v", err)
				}
				return ""
			default:
				return "the query goes on"
			}
		})
	}
}

func TestHowTLSStarts(t *testing.T) {
	k := newPKI(t, 0)
	pg := testpg.ForTest(t)
	database := pg.Database(t)
	o := pg.Options(database, "transaction", 2)
	o.General += k.general()
	p := testpg.Pgebb(t, o)
	t.Run("direct", func(t *testing.T) {
		l := k.encrypted(p, database)
		l.Direct = true
		query(t, connect(t, l), "SELECT 1")
		l.TLS.NextProtos = nil
		if _, err := frontendtest.Connect(l); code(err) != "08P01" {
			t.Errorf("without ALPN: %v", err)
		}
		l.TLS.NextProtos = []string{"h2"}
		if _, err := frontendtest.Connect(l); err == nil || !strings.Contains(err.Error(), "no application protocol") {
			t.Errorf("with that of another protocol: %v", err)
		}
	})
	t.Run("an old version", func(t *testing.T) {
		l := k.encrypted(p, database)
		l.TLS.MinVersion, l.TLS.MaxVersion = tls.VersionTLS11, tls.VersionTLS11
		if _, err := frontendtest.Connect(l); err == nil || !strings.Contains(err.Error(), "protocol version") {
			t.Errorf("TLS 1.1: %v", err)
		}
	})
	t.Run("bytes before the handshake", func(t *testing.T) {
		got := raw(t, p, append(append([]byte{}, frontendtest.SSLRequest...), wire.AppendStartup(nil, wire.Version30, "user", database)...), true)
		if !strings.Contains(string(got), "received unencrypted data after SSL request") {
			t.Errorf("%q comes back", got)
		}
	})
	t.Run("SSLRequest inside", func(t *testing.T) {
		c, err := frontendtest.Dial("tcp", p.Address())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if err := c.Encrypt(k.config(), false); err != nil {
			t.Fatal(err)
		}
		_ = c.Send(frontendtest.SSLRequest)
		if m, err := c.Receive(); err != nil || !strings.Contains(string(m.Body), "unsupported frontend protocol 1234.5679") {
			t.Errorf("%q comes back, %v", m.Body, err)
		}
	})
	t.Run("what is no TLS", func(t *testing.T) { testNoTLS(t, p) })
	query(t, connect(t, k.encrypted(p, database)), "SELECT 1")
}

// testNoTLS sends what is no handshake behind an SSLRequest, at once and after its answer.
func testNoTLS(t *testing.T, p *testpg.Process) {
	for name, b := range map[string]string{"garbage": "\x00\x01\x02garbage", "no record of TLS": "GET / HTTP/1.1\r\n\r\n", "a truncated record": "\x16\x03\x01\x02\x00abc"} {
		if got := raw(t, p, append(append([]byte{}, frontendtest.SSLRequest...), b...), true); !strings.Contains(string(got), "received unencrypted data") {
			t.Errorf("%s, at once: %q comes back", name, got)
		}
		c, err := frontendtest.Dial("tcp", p.Address())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		_ = c.Send(frontendtest.SSLRequest)
		if _, err := io.ReadFull(c, make([]byte, 1)); err != nil {
			t.Fatal(err)
		}
		_ = c.Send([]byte(b))
		_ = c.HalfClose()
		got, _ := io.ReadAll(c) // a reset is as good as an end
		if len(got) > 0 && got[0] != 21 {
			t.Errorf("%s, later: %q comes back, which is no alert", name, got)
		}
	}
}

// md5Of is what Postgres's md5() says of a text.
func md5Of(text string) string {
	s := md5.Sum([]byte(text))
	return hex.EncodeToString(s[:])
}

func TestMuchComesThroughTLSAsItIs(t *testing.T) {
	k := newPKI(t, 0)
	pg := k.postgres(t, testcert.Options{IPs: []string{"127.0.0.1"}})
	database := pg.Database(t)
	o := pg.Options(database, "transaction", 2)
	o.General += k.general() + fmt.Sprintf("tls_verify = \"verify_full\"\ntls_server_ca_certificate = %q\n", k.ca)
	p := testpg.Pgebb(t, o)
	c := connect(t, k.encrypted(p, database))
	const text = "SELECT string_agg(md5(i::text), '') FROM generate_series(1, %d) AS i"
	for _, n := range []int{1, 100, 2_000, 100_000} {
		got := query(t, c, fmt.Sprintf(text, n))[0]
		if want := query(t, c, fmt.Sprintf("SELECT md5(s) FROM ("+text+") AS x(s)", n))[0]; md5Of(got) != want {
			t.Errorf("a result of %d bytes has changed on its way", len(got))
		}
		if back := query(t, c, "SELECT md5('"+got+"')")[0]; back != md5Of(got) {
			t.Errorf("a query of %d bytes has changed on its way", len(got))
		}
	}
	// Rows to somebody who does not read for a while, and the server is someone else's then.
	slow := connect(t, k.encrypted(p, database))
	if err := slow.Send(wire.AppendRaw(nil, wire.Query, []byte("SELECT md5(i::text) FROM generate_series(1, 300000) AS i\x00"))); err != nil {
		t.Fatal(err)
	}
	query(t, c, "SELECT 1")
	got, err := slow.Until(wire.ReadyForQuery)
	if err != nil || len(got) != 300_003 {
		t.Errorf("a slow client gets %d messages, %v", len(got), err)
	}
	epilogueTLS(t, p, database)
}

// epilogueTLS checks that nothing is in use any more.
func epilogueTLS(t *testing.T, p *testpg.Process, database string) {
	t.Helper()
	eventually(t, 2*time.Second, func() string { return poolBusy(t, p, database) })
}

func TestACertificateIsReplacedByAReload(t *testing.T) {
	k, next := newPKI(t, 0), newPKI(t, 0)
	pg := testpg.ForTest(t)
	database := pg.Database(t)
	o := pg.Options(database, "transaction", 2)
	o.General += k.general()
	p := testpg.Pgebb(t, o)
	before := connect(t, k.encrypted(p, database))
	reload := func(general, says string) {
		t.Helper()
		changed := o
		changed.General = strings.ReplaceAll(o.General, k.general(), general)
		if err := p.Configure(changed); err != nil {
			t.Fatal(err)
		}
		n := strings.Count(p.Log(), says)
		if err := p.Signal(syscall.SIGHUP); err != nil {
			t.Fatal(err)
		}
		eventually(t, 5*time.Second, func() string {
			if strings.Count(p.Log(), says) == n {
				return "it does not say " + says
			}
			return ""
		})
	}
	reload("tls_certificate = \"/nowhere/a.crt\"\ntls_private_key = \"/nowhere/a.key\"\n", "/nowhere/a.crt cannot be read")
	query(t, connect(t, k.encrypted(p, database)), "SELECT 1")
	reload(next.general(), "configuration reloaded")
	query(t, connect(t, next.encrypted(p, database)), "SELECT 1")
	query(t, before, "SELECT 1")
	reload("", "configuration reloaded")
	query(t, before, "SELECT 1")
	if _, err := frontendtest.Connect(next.encrypted(p, database)); err == nil || !strings.Contains(err.Error(), "'N'") {
		t.Errorf("without a certificate: %v", err)
	}
}
