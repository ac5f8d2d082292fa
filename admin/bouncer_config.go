package admin

import "strings"

// bouncerKeys are PgBouncer's settings that there are under another name, and what is
// divided by for its unit.
var bouncerKeys = []struct {
	key, ours string
	seconds   bool // ours is in milliseconds
}{
	{"auth_type", "auth_type", false},
	{"client_idle_timeout", "client_idle_timeout", true},
	{"client_login_timeout", "client_login_timeout", true},
	{"default_pool_size", "default_pool_size", false},
	{"idle_transaction_timeout", "client_idle_in_transaction_timeout", true},
	{"listen_addr", "host", false},
	{"listen_port", "port", false},
	{"log_connections", "log_connections", false},
	{"log_disconnections", "log_disconnections", false},
	{"max_prepared_statements", "prepared_statements_limit", false},
	{"min_pool_size", "min_pool_size", false},
	{"pool_mode", "pooler_mode", false},
	{"query_timeout", "query_timeout", true},
	{"query_wait_timeout", "checkout_timeout", true},
	{"server_connect_timeout", "connect_timeout", true},
	{"server_idle_timeout", "idle_timeout", true},
	{"server_lifetime", "server_lifetime", true},
	{"stats_period", "stats_period", true},
	{"tcp_keepalive", "tcp_keepalive", false},
	{"unix_socket_dir", "unix_socket_dir", false},
}

// absentKeys are limits that exporters read and pgebb does not have.
var absentKeys = []string{"max_client_conn", "max_db_connections", "max_user_connections", "reserve_pool_size"}

// bouncerConfig shows the settings that PgBouncer has as well.
func bouncerConfig(r *request) (rows [][]*string, _ error) {
	settings := map[string]Setting{}
	for _, s := range r.src.Config.Settings() {
		settings[s.Name] = s
	}
	for _, k := range bouncerKeys {
		s := settings[k.ours]
		changeable := "no"
		if s.Reloadable {
			changeable = "yes"
		}
		rows = append(rows, row(k.key, bouncerValue(s.Value, k.seconds), bouncerValue(s.Default, k.seconds), changeable))
	}
	for _, key := range absentKeys {
		rows = append(rows, row(key, "0", "0", "no"))
	}
	return rows, nil
}

// bouncerValue is a value as PgBouncer shows it: 0 for no limit, 1 and 0 for true and
// false, seconds, NULL for none.
func bouncerValue(value string, seconds bool) any {
	switch value {
	case "off", "unlimited":
		return "0"
	case "true":
		return "1"
	case "false":
		return "0"
	case "default":
		return nil
	}
	if !seconds {
		return value
	}
	for _, u := range []struct {
		name    string
		seconds float64
	}{{"ms", 0.001}, {"s", 1}, {"m", 60}, {"h", 3600}, {"d", 86400}, {"", 0.001}} {
		if n, ok := number(strings.TrimSuffix(value, u.name)); ok && strings.HasSuffix(value, u.name) {
			return trimmed(n * u.seconds)
		}
	}
	return value
}
