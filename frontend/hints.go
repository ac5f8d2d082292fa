package frontend

import (
	"bytes"
	"strings"

	"github.com/pgebb/pgebb/backend"
	"github.com/pgebb/pgebb/pool"
)

// This file reads what clients ask for in their session: the start-up parameter pgdog.role,
// and SET pgdog.role. The name is PgDog's, so that applications need not be changed.
// Comments in statements are read by package parser.

const roleParameter = "pgdog.role"

// roleOf is what a value of pgdog.role asks for; pool.Any takes the wish back.
func roleOf(value string) (pool.Access, bool) {
	switch strings.ToLower(value) {
	case "primary":
		return pool.Write, true
	case "replica":
		return pool.Replica, true
	case "auto", "":
		return pool.Any, true
	}
	return pool.Any, false
}

// takeRole takes pgdog.role out of run-time parameters.
func takeRole(params []backend.Param) (rest []backend.Param, role pool.Access, failure *Error) {
	role = pool.Any
	for i, p := range params {
		if !strings.EqualFold(p.Name, roleParameter) {
			continue
		}
		role, ok := roleOf(p.Value)
		if !ok {
			return params, role, errRole(p.Value)
		}
		return append(params[:i:i], params[i+1:]...), role, nil
	}
	return params, role, nil
}

// setRole reads SET pgdog.role and RESET pgdog.role. A value that makes no sense changes
// nothing; Postgres, which gets the statement, takes any.
func setRole(sql []byte) (role pool.Access, ok bool) {
	if len(sql) > 200 || len(sql) < len(roleParameter) || sql[0]|0x20 != 's' && sql[0]|0x20 != 'r' || !containsFold(sql, roleParameter) {
		return pool.Any, false
	}
	words := strings.FieldsFunc(strings.ToLower(string(sql)), func(r rune) bool { return strings.ContainsRune(" \t\r\n;='\"", r) })
	if len(words) == 2 && words[0] == "reset" && words[1] == roleParameter {
		return pool.Any, true
	}
	if len(words) < 3 || words[0] != "set" {
		return pool.Any, false
	}
	words = words[1:]
	if words[0] == "session" {
		words = words[1:]
	}
	if len(words) == 3 && words[1] == "to" {
		words = append(words[:1], words[2])
	}
	if len(words) != 2 || words[0] != roleParameter {
		return pool.Any, false
	}
	if words[1] == "default" {
		return pool.Any, true
	}
	return roleOf(words[1])
}

// containsFold reports whether a text contains a name in any case.
func containsFold(sql []byte, lower string) bool {
	return bytes.Contains(bytes.ToLower(sql), []byte(lower))
}
