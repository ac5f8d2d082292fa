package config

import (
	"slices"
	"strings"
	"testing"
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
		"ban_timeout": "1h", "server_lifetime": "1d", "server_lifetime_jitter": "0ms", "query_timeout": "9223372036854775807ms",
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
