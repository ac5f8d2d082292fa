package config

import (
	"slices"
	"strings"
	"testing"
	"time"
)

func TestRows(t *testing.T) {
	c := mustLoad(t, "[general]\nidle_timeout = 120000\nconnect_timeout = 2000\ncheckout_timeout = 1500\nban_timeout = 3600000\n"+
		"tls_verify = 'disabled'\n[admin]\npassword = 'secret'\n[tcp]\ntime = 5000\n", "", nil)
	rows := c.Rows()
	got := map[string]string{}
	for _, r := range rows {
		if _, again := got[r.Name]; again {
			t.Errorf("%s is there twice", r.Name)
		}
		got[r.Name] = r.Value
	}
	for name, want := range map[string]string{
		"host": "0.0.0.0", "port": "6432", "pooler_mode": "transaction", "idle_timeout": "2m", "connect_timeout": "2s", "checkout_timeout": "1500ms",
		"ban_timeout": "1h", "server_lifetime": "1d", "server_lifetime_jitter": "0ms", "query_timeout": "off", "prepared_statements_limit": "unlimited",
		"shutdown_termination_timeout": "default", "dns_ttl": "default", "stats_period": "15000", "tls_certificate": "default", "tls_verify": "disabled",
		"healthcheck_port": "default", "mirror_exposure": "1.0", "log_connections": "true", "tcp_keepalive": "true", "tcp_time": "5s",
		"tcp_interval": "default", "tcp_retries": "default", "tcp_congestion_control": "default", "memory_net_buffer": "4096", "memory_trim_interval": "5s",
	} {
		if got[name] != want {
			t.Errorf("%s is shown as %q, want %q", name, got[name], want)
		}
	}
	group := func(name string) string {
		switch {
		case strings.HasPrefix(name, "tcp_"):
			return "2" + name
		case strings.HasPrefix(name, "memory_"):
			return "3" + name
		}
		return "1" + name
	}
	if !slices.IsSortedFunc(rows, func(a, b Row) int { return strings.Compare(group(a.Name), group(b.Name)) }) {
		t.Error("the rows are not those of [general], [tcp], [memory] by name")
	}
}

func TestRowsSayWhereAValueComesFrom(t *testing.T) {
	c := mustLoad(t, "[general]\n\nidle_timeout = 120000\n[tcp]\ntime = 5000\n", "", map[string]string{"PGDOG_MIN_POOL_SIZE": "3"})
	c, err := c.Set("checkout_timeout", "7000")
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]Row{
		"idle_timeout":     {Value: "2m", Default: "1m", Source: "FILE:3", Reloadable: true},
		"tcp_time":         {Value: "5s", Default: "default", Source: "FILE:5"},
		"min_pool_size":    {Value: "3", Default: "1", Source: "PGDOG_MIN_POOL_SIZE", Reloadable: true},
		"checkout_timeout": {Value: "7s", Default: "5s", Source: "SET", Reloadable: true},
		"port":             {Value: "6432", Default: "6432", Source: "default"},
		"query_timeout":    {Value: "off", Default: "off", Source: "default", Reloadable: true},
	}
	for _, r := range c.Rows() {
		w, ok := want[r.Name]
		if _, line, ok := strings.Cut(r.Source, "pgdog.toml:"); ok {
			r.Source = "FILE:" + line
		}
		if w.Name = r.Name; ok && r != w {
			t.Errorf("%s is shown as %+v, want %+v", r.Name, r, w)
		}
	}
}

func TestSetHoldsUntilReset(t *testing.T) {
	loaded := mustLoad(t, "[general]\nidle_timeout = 120000\n[[databases]]\nname = 'd'\nhost = 'h'\n", "[[users]]\nname = 'u'\npassword = 'p'\ndatabase = 'd'\n", nil)
	c, err := loaded.Set("idle_timeout", "1000")
	if err != nil {
		t.Fatal(err)
	}
	if c, err = c.Set("default_pool_size", "3"); err != nil {
		t.Fatal(err)
	}
	p, _ := c.FindPool("u", "d")
	if p.IdleTimeout != time.Second || p.Size != 3 {
		t.Errorf("the pool has %v and %d, want 1s and 3", p.IdleTimeout, p.Size)
	}
	if before, _ := loaded.FindPool("u", "d"); before.IdleTimeout != 2*time.Minute || before.Size != 10 {
		t.Errorf("the configuration that was read has changed: %v and %d", before.IdleTimeout, before.Size)
	}
	if c, err = c.Reset("idle_timeout"); err != nil {
		t.Fatal(err)
	}
	p, _ = c.FindPool("u", "d")
	if p.IdleTimeout != 2*time.Minute || p.Size != 3 || !slices.Equal(c.WasSet(), []string{"default_pool_size"}) {
		t.Errorf("after a reset of one key the pool has %v and %d, and %q are set", p.IdleTimeout, p.Size, c.WasSet())
	}
	if c, err = c.Reset(""); err != nil || c != loaded {
		t.Errorf("after a reset of all keys the configuration is not that which was read, %v", err)
	}
}

func TestSetRefusesWhatItCannotDo(t *testing.T) {
	c := mustLoad(t, "", "", nil)
	for _, test := range []struct{ key, value, want string }{
		{"idle_timout", "1", `there is no key "idle_timout" in [general]; did you mean "idle_timeout"?`},
		{"port", "1", "port changes at a restart only"},
		{"query_log", "/tmp/x", "query_log names a file, and who is on the console is not to choose what is written: change it in pgdog.toml and RELOAD"},
		{"tls_certificate", "x", "tls_certificate names a file, which is read with the configuration: change it there and RELOAD"},
		{"tls_client_required", "true", "tls_client_required: without tls_certificate nobody could connect"},
		{"dry_run", "true", "dry_run is not supported, so to set it would do nothing"},
		{"idle_timeout", "soon", `idle_timeout: the value must be a number of milliseconds, not "soon"`},
		{"pooler_mode", "x", `pooler_mode: "x" is none of transaction, session, statement`},
	} {
		if _, err := c.Set(test.key, test.value); err == nil || err.Error() != test.want {
			t.Errorf("to set %s to %s says %q, want %q", test.key, test.value, err, test.want)
		}
	}
}
