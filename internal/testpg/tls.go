package testpg

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/pgebb/pgebb/internal/testcert"
)

// TLS are the settings for [Start] that give a Postgres a certificate, and have it accept
// those of clients from an authority, which may be nil. The files are removed at the end
// of the test.
func TLS(tb testing.TB, c *testcert.Certificate, clients *testcert.Authority) []string {
	tb.Helper()
	dir, err := os.MkdirTemp("/tmp", "pgebb-tls-") // a place that Postgres can reach
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { os.RemoveAll(dir) })
	settings, err := tlsSettings(dir, c, clients)
	if err != nil {
		tb.Fatal(err)
	}
	return settings
}

func tlsSettings(dir string, c *testcert.Certificate, clients *testcert.Authority) ([]string, error) {
	if err := os.Chmod(dir, 0o755); err != nil {
		return nil, err
	}
	cert, key, err := c.Write(dir, "server")
	if err != nil {
		return nil, err
	}
	if os.Getuid() == 0 { // Postgres insists on owning its key
		uid, gid, err := nobody()
		if err != nil {
			return nil, err
		}
		if err := os.Chown(key, int(uid), int(gid)); err != nil {
			return nil, fmt.Errorf("giving Postgres its key: %w", err)
		}
	}
	settings := []string{"ssl=on", "ssl_cert_file=" + cert, "ssl_key_file=" + key}
	if clients != nil {
		ca, _, err := clients.Write(dir, "clients")
		if err != nil {
			return nil, err
		}
		settings = append(settings, "ssl_ca_file="+ca)
	}
	return settings, nil
}

// CertificateFiles writes a certificate with its key, and the certificate of its
// authority, into a folder that is removed at the end of the test.
func CertificateFiles(tb testing.TB, c *testcert.Certificate, authority *testcert.Authority) (cert, key, ca string) {
	tb.Helper()
	dir := tb.TempDir()
	cert, key, err := c.Write(dir, "own")
	if err == nil {
		ca = filepath.Join(dir, "ca.crt")
		err = os.WriteFile(ca, authority.CertPEM, 0o644)
	}
	if err != nil {
		tb.Fatal(err)
	}
	return cert, key, ca
}
