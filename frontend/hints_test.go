package frontend

import (
	"slices"
	"testing"

	"github.com/pgebb/pgebb/backend"
	"github.com/pgebb/pgebb/pool"
)

func TestSetRole(t *testing.T) {
	for sql, want := range map[string]pool.Access{
		"SET pgdog.role TO 'replica'":           pool.Replica,
		"set pgdog.role = primary;":             pool.Write,
		"SET SESSION pgdog.role TO \"primary\"": pool.Write,
		"SET pgdog.role='replica'":              pool.Replica,
		"SET pgdog.role TO auto":                pool.Any,
		"SET pgdog.role TO DEFAULT":             pool.Any,
		"RESET pgdog.role":                      pool.Any,
	} {
		if got, ok := setRole([]byte(sql)); !ok || got != want {
			t.Errorf("%s sets %d, %v, want %d", sql, got, ok, want)
		}
	}
	for _, sql := range []string{
		"", "SET", "RESET", "SET search_path TO x", "SELECT 'pgdog.role'", "SET pgdog.role", "SET pgdog.role TO leader",
		"SET LOCAL pgdog.role TO replica", "SHOW pgdog.role", "SET pgdog.role TO replica; SELECT 1", "RESET ALL",
	} {
		if got, ok := setRole([]byte(sql)); ok {
			t.Errorf("%s sets %d", sql, got)
		}
	}
}

func TestTheRoleIsTakenOutOfTheParametersOfALogin(t *testing.T) {
	params := []backend.Param{{Name: "a", Value: "1"}, {Name: "PGDOG.Role", Value: "Replica"}, {Name: "b", Value: "2"}}
	rest, role, e := takeRole(params)
	if e != nil || role != pool.Replica || !slices.Equal(rest, []backend.Param{{Name: "a", Value: "1"}, {Name: "b", Value: "2"}}) {
		t.Errorf("%v, %d, %v", rest, role, e)
	}
	if rest, role, e := takeRole(rest); e != nil || role != pool.Any || len(rest) != 2 {
		t.Errorf("without a role: %v, %d, %v", rest, role, e)
	}
	if _, _, e := takeRole([]backend.Param{{Name: "pgdog.role", Value: "x"}}); e == nil || e.Code != "22023" {
		t.Errorf("a role that there is not: %v", e)
	}
}
