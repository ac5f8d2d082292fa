package config

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pgebb/pgebb/internal/testcert"
)

// certificateFiles are what keys of [general] may name, in a folder.
func certificateFiles(t *testing.T) (dir string) {
	t.Helper()
	dir = t.TempDir()
	authority, err := testcert.New(0)
	if err != nil {
		t.Fatal(err)
	}
	for name, o := range map[string]testcert.Options{"a": {CommonName: "a"}, "b": {CommonName: "b"}, "old": {CommonName: "old", Expired: true}} {
		c, err := authority.Issue(o)
		if err == nil {
			_, _, err = c.Write(dir, name)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if _, _, err := authority.Write(dir, "ca"); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"text":   "not PEM",
		"locked": "-----BEGIN ENCRYPTED PRIVATE KEY-----\nAAAA\n-----END ENCRYPTED PRIVATE KEY-----\n",
		"broken": "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestCertificates(t *testing.T) {
	dir := certificateFiles(t)
	c := mustLoad(t, fmt.Sprintf(`[general]
tls_certificate = "%[1]s/a.crt"
tls_private_key = "%[1]s/a.key"
tls_client_required = true
tls_client_ca_certificate = "%[1]s/ca.crt"
tls_verify = "verify_full"
tls_server_ca_certificate = "%[1]s/ca.crt"
tls_server_certificate = "%[1]s/b.crt"
tls_server_private_key = "%[1]s/b.key"
`, dir)+oneDatabase, oneUser, nil)
	client, server := c.ClientTLS, c.ServerTLS
	if client.Certificate == nil || client.Certificate.Leaf.Subject.CommonName != "a" || client.Authorities == nil || !client.Required {
		t.Errorf("for clients there is %+v", client)
	}
	if server.Certificate == nil || server.Certificate.Leaf.Subject.CommonName != "b" || server.Authorities == nil || server.Verify != VerifyFull {
		t.Errorf("for servers there is %+v", server)
	}
	c = mustLoad(t, oneDatabase, oneUser, nil)
	if c.ClientTLS != (ClientTLS{}) || c.ServerTLS != (ServerTLS{Verify: VerifyPrefer}) {
		t.Errorf("without any of these keys there is %+v, %+v", c.ClientTLS, c.ServerTLS)
	}
}

func TestBadCertificates(t *testing.T) {
	dir := certificateFiles(t)
	for _, test := range []struct{ general, want string }{
		{"tls_certificate = '@a.crt'", "pgdog.toml:2: general.tls_certificate: this needs tls_private_key"},
		{"tls_private_key = '@a.key'", "pgdog.toml:2: general.tls_private_key: this needs tls_certificate"},
		{"tls_certificate = '@a.crt'\ntls_private_key = '@b.key'", "pgdog.toml:2: general.tls_certificate: @a.crt and @b.key cannot be used together: private key does not match public key"},
		{"tls_certificate = '@none'\ntls_private_key = '@a.key'", "pgdog.toml:2: general.tls_certificate: @none cannot be read: no such file or directory"},
		{"tls_certificate = '@text'\ntls_private_key = '@a.key'", "pgdog.toml:2: general.tls_certificate: @text is not in PEM format: it has no BEGIN CERTIFICATE"},
		{"tls_certificate = '@a.crt'\ntls_private_key = '@locked'", "pgdog.toml:3: general.tls_private_key: @locked is protected by a passphrase, which nobody could enter: remove it (openssl pkey)"},
		{"tls_certificate = '@a.key'\ntls_private_key = '@a.crt'", `
			pgdog.toml:2: general.tls_certificate: @a.key has a PRIVATE KEY and no CERTIFICATE
			pgdog.toml:3: general.tls_private_key: @a.crt has a CERTIFICATE and no PRIVATE KEY`},
		{"tls_certificate = '@old.crt'\ntls_private_key = '@old.key'", "warning: pgdog.toml:2: general.tls_certificate: @old.crt has expired at"},
		{"tls_server_ca_certificate = '@broken'", "pgdog.toml:2: general.tls_server_ca_certificate: @broken: x509: malformed certificate"},
		{"tls_client_required = true", "pgdog.toml:2: general.tls_client_required: this needs tls_certificate and tls_private_key"},
		{"tls_client_ca_certificate = '@ca.crt'", "pgdog.toml:2: general.tls_client_ca_certificate: this needs tls_certificate and tls_private_key"},
		{"tls_server_certificate = '@a.crt'", "pgdog.toml:2: general.tls_server_certificate: this needs tls_server_private_key"},
		{"tls_verify = 'disabled'\ntls_server_ca_certificate = '@ca.crt'", "warning: pgdog.toml:3: general.tls_server_ca_certificate: this is not used, since tls_verify is disabled"},
		{"tls_verify = 'verify_host'", `pgdog.toml:2: general.tls_verify: "verify_host" is none of disabled, prefer, verify_ca, verify_full (did you mean "verify_ca"?)`},
	} {
		_, problems := loadText(t, "[general]\n"+strings.ReplaceAll(test.general, "@", dir+"/")+"\n"+oneDatabase, oneUser, nil)
		for i := range problems {
			if at := strings.Index(problems[i].Message, " has expired at "); at >= 0 {
				problems[i].Message = problems[i].Message[:at+len(" has expired at")]
			}
		}
		expect(t, problems, strings.ReplaceAll(test.want, "@", dir+"/"))
	}
}

func TestModesOfURLsAndVerification(t *testing.T) {
	for _, test := range []struct{ verify, mode, want string }{
		{"disabled", "disable", ""}, {"disabled", "prefer", ""},
		{"disabled", "require", "database URL 1: sslmode: tls_verify is disabled, which is less than require: set it to verify_ca"},
		{"verify_ca", "require", ""}, {"verify_ca", "verify-ca", ""},
		{"verify_ca", "verify-full", "database URL 1: sslmode: tls_verify is verify_ca, which is less than verify-full: set it to verify_full"},
		{"verify_full", "verify-full", ""},
	} {
		_, problems := loadText(t, "[general]\ntls_verify = '"+test.verify+"'", "", nil, "postgres://u:x@h/d?sslmode="+test.mode)
		expect(t, problems, test.want)
	}
}
