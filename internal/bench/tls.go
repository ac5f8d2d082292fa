package main

import (
	"crypto/tls"
	"fmt"
	"os"
	"path/filepath"

	"github.com/pgebb/pgebb/internal/testcert"
)

// tlsScenarios are those in which the connections of clients are encrypted. Postgres is
// not measured: it has no TLS here, and needs none.
var tlsScenarios = []scenario{
	{
		name: "tls-simple", title: "`SELECT 1` over TLS, simple protocol, 16 clients, pool 20", tls: true, pooler: true,
		metrics: []metric{
			{key: "cpu_us", name: "CPU per transaction", unit: "µs", ratio: 0.95},
			{key: "tps", name: "transactions per second"},
			{key: "switches", name: "voluntary context switches per transaction"},
			{key: "syscalls", name: "system calls per transaction"},
		},
		measure: func(b *rig, s *system) (sample, error) { return b.pgbench(s, "simple") },
	},
	{
		name: "tls-results", title: "results of 10 MB over TLS, in 10,000 rows of 1,000 bytes, 4 clients", tls: true, pooler: true,
		metrics: []metric{{key: "cpu_ms", name: "CPU per result", unit: "ms", ratio: 0.55}, rate},
		measure: func(b *rig, s *system) (sample, error) { return b.results(s, 10_000, 1_000) },
	},
	{
		name: "tls-idle", title: "idle clients with TLS, ten seconds after one query each", fresh: true, tls: true, pooler: true,
		metrics: []metric{
			{key: "rss_b", name: "RSS per client", unit: "B", value: 9 << 10},
			{key: "clients", name: "clients"},
			{key: "before_mb", name: "RSS before, without clients", unit: "MB"},
		},
		measure: (*rig).idle,
	},
	{
		name: "scram-logins", title: "logins by SCRAM with one query each, 32 at a time", auth: "scram", pooler: true,
		metrics: []metric{
			{key: "cpu_us", name: "CPU per login", unit: "µs"},
			{key: "per_s", name: "logins per second", ratio: 1, more: true},
		},
		measure: (*rig).logins,
	},
	{
		name: "scram-passwords", title: "the same with PgBouncer given the password, as pgebb is, and not Postgres's verifier", auth: "scram", pooler: true, bare: true,
		metrics: []metric{
			{key: "cpu_us", name: "CPU per login", unit: "µs"},
			{key: "per_s", name: "logins per second", ratio: 1, more: true},
		},
		measure: (*rig).logins,
	},
	{
		name: "tls-logins", title: "logins by SCRAM over TLS with one query each, 32 at a time", auth: "scram", tls: true, pooler: true,
		metrics: []metric{
			{key: "cpu_us", name: "CPU per login", unit: "µs"},
			{key: "per_s", name: "logins per second"},
		},
		measure: (*rig).logins,
	},
}

func init() { scenarios = append(scenarios, tlsScenarios...) }

// certificate writes what both poolers show to clients, where both can read it. It goes
// when Postgres's folder does.
func (b *rig) certificate() error {
	authority, err := testcert.New(0)
	if err != nil {
		return err
	}
	c, err := authority.Issue(testcert.Options{CommonName: "bench"})
	if err != nil {
		return err
	}
	if b.cert, b.key, err = c.Write(b.pg.Dir, "bench"); err != nil {
		return fmt.Errorf("writing a certificate: %w", err)
	}
	if err := os.Chmod(b.key, 0o644); err != nil { // a throwaway key for everybody
		return fmt.Errorf("writing a certificate: %w", err)
	}
	return nil
}

// pgebbTLS and bouncerTLS are the lines of the configuration that encrypt clients.
func (b *rig) pgebbTLS() string {
	if !b.tls {
		return ""
	}
	return fmt.Sprintf("tls_certificate = %q\ntls_private_key = %q\ntls_client_required = true\n", b.cert, b.key)
}

func (b *rig) bouncerTLS() string {
	if !b.tls {
		return ""
	}
	return fmt.Sprintf("client_tls_sslmode = require\nclient_tls_cert_file = %s\nclient_tls_key_file = %s\n", filepath.Clean(b.cert), filepath.Clean(b.key))
}

// clientTLS is how clients encrypt, nil if they do not.
func (b *rig) clientTLS(s *system) *tls.Config {
	if !b.tls || s.direct {
		return nil
	}
	return &tls.Config{InsecureSkipVerify: true, MinVersion: tls.VersionTLS12}
}

// sslmode is that of pgbench.
func (b *rig) sslmode(s *system) string {
	if b.clientTLS(s) == nil {
		return "disable"
	}
	return "require"
}
