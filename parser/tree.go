package parser

import (
	"bytes"
	"errors"
	"strings"

	pgquery "github.com/pganalyze/pg_query_go/v6"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/pgebb/pgebb/internal/verdict"
)

// errTree is for bytes that are no tree.
var errTree = errors.New("not a tree of libpg_query")

// reader makes a verdict of a tree in the form that libpg_query gives it.
type reader struct {
	v          verdict.Verdict
	statements int
	temp       bool // a temporary relation may be left
	updates    bool // there is an UPDATE
	pgSettings bool // and the view pg_settings
	body       bool // there is a DO
}

// read makes a verdict of a tree.
func read(tree []byte) (*reader, error) {
	r := &reader{}
	if err := r.message(schema(), tree); err != nil {
		return nil, err
	}
	if r.temp {
		r.v.Flags |= verdict.Temp
	}
	if r.updates && r.pgSettings {
		r.v.Flags |= verdict.Settings | verdict.Unnamed
	}
	if r.statements > 1 {
		r.v.Flags |= verdict.Several
	}
	return r, nil
}

// message goes through one node and all that is below it.
func (r *reader) message(m *message, b []byte) error {
	for len(b) > 0 {
		n, typ, size := protowire.ConsumeTag(b)
		if size < 0 {
			return errTree
		}
		b = b[size:]
		if typ != protowire.BytesType {
			if size = protowire.ConsumeFieldValue(n, typ, b); size < 0 {
				return errTree
			}
			b = b[size:]
			continue
		}
		value, size := protowire.ConsumeBytes(b)
		if size < 0 {
			return errTree
		}
		b = b[size:]
		if int(n) >= len(m.fields) || m.fields[n].child == nil {
			continue
		}
		if err := r.node(m.fields[n].child, value); err != nil {
			return err
		}
	}
	return nil
}

// node looks at one node, and then at all that is below it.
func (r *reader) node(m *message, b []byte) error {
	switch m.name {
	case "RawStmt":
		r.statements++
		if err := r.statement(b); err != nil {
			return err
		}
	case "A_Const":
		return nil
	case "InsertStmt", "DeleteStmt", "MergeStmt", "IntoClause":
		r.v.Flags |= verdict.Write
	case "UpdateStmt":
		r.updates = true
		r.v.Flags |= verdict.Write
	case "LockingClause":
		r.v.Flags |= verdict.Write | verdict.Locking
	case "FuncCall":
		if err := r.call(b); err != nil {
			return err
		}
	case "RangeVar":
		if err := r.relation(b); err != nil {
			return err
		}
	case "String":
		r.temp = r.temp || bytes.HasSuffix(b, []byte("pg_temp"))
	}
	if m.name == "CreateStmt" || m.name == "IntoClause" {
		return r.created(m, b)
	}
	return r.message(m, b)
}

// created looks whether a relation goes with its transaction.
func (r *reader) created(m *message, b []byte) error {
	temp := r.temp
	r.temp = false
	if err := r.message(m, b); err != nil {
		return err
	}
	drops := false
	if m.name == "CreateStmt" {
		var s pgquery.CreateStmt
		if err := proto.Unmarshal(b, &s); err != nil {
			return errTree
		}
		drops = s.Oncommit == pgquery.OnCommitAction_ONCOMMIT_DROP
	} else {
		var s pgquery.IntoClause
		if err := proto.Unmarshal(b, &s); err != nil {
			return errTree
		}
		drops = s.OnCommit == pgquery.OnCommitAction_ONCOMMIT_DROP
	}
	r.temp = temp || r.temp && !drops
	return nil
}

func (r *reader) relation(b []byte) error {
	var v pgquery.RangeVar
	if err := proto.Unmarshal(b, &v); err != nil {
		return errTree
	}
	if v.Relpersistence == "t" || v.Schemaname == "pg_temp" {
		r.temp = true
	}
	if v.Relname == "pg_settings" {
		r.pgSettings = true
	}
	return nil
}

// call looks at the call of a function.
func (r *reader) call(b []byte) error {
	f := functionOf(calledName(b))
	if f != setsConfig {
		r.v.Flags |= f.flags()
		return nil
	}
	r.v.Flags |= verdict.Write
	if len(b) > maxCall {
		r.v.Flags |= f.flags()
		return nil
	}
	return decode(b, func(c *pgquery.FuncCall) { r.setConfig(c.Args) })
}

// maxCall is the largest call of set_config in bytes whose arguments are looked at.
const maxCall = 4 << 10

// calledName finds the name of the function in a FuncCall, without its schema: the last of
// the names in the first field.
func calledName(call []byte) (name []byte) {
	for len(call) > 0 {
		n, typ, size := protowire.ConsumeTag(call)
		if size < 0 || n != 1 || typ != protowire.BytesType {
			break
		}
		node, more := protowire.ConsumeBytes(call[size:])
		if more < 0 {
			break
		}
		call = call[size+more:]
		// A Node that is a String, whose only field is its value.
		for range 2 {
			_, _, size = protowire.ConsumeTag(node)
			if size < 0 {
				return nil
			}
			if node, more = protowire.ConsumeBytes(node[size:]); more < 0 {
				return nil
			}
		}
		name = node
	}
	return name
}

// setConfig looks at the arguments of set_config.
func (r *reader) setConfig(args []*pgquery.Node) {
	s := verdict.Setting{}
	named := false
	if len(args) == 3 {
		s.Name, named = text(args[0])
		s.Value, s.Known = text(args[1])
		s.Local = truth(args[2])
	}
	if s.Local {
		return
	}
	if !named {
		r.v.Flags |= verdict.Settings | verdict.Unnamed
		return
	}
	r.set(s)
}

// set notes a change of a parameter.
func (r *reader) set(s verdict.Setting) {
	s.Name = strings.ToLower(s.Name)
	r.v.Settings = append(r.v.Settings, s)
	if s.Local {
		return
	}
	r.v.Flags |= verdict.Settings
	if s.Name == "session_authorization" {
		r.v.Flags |= verdict.Authorization
	}
}

// text is the value of a constant.
func text(n *pgquery.Node) (string, bool) {
	if cast := n.GetTypeCast(); cast != nil {
		n = cast.Arg
	}
	c := n.GetAConst()
	if c == nil {
		return "", false
	}
	s, ok := c.Val.(*pgquery.A_Const_Sval)
	if !ok {
		return "", false
	}
	return s.Sval.GetSval(), true
}

// truth reports whether a constant is true, in any of its spellings.
func truth(n *pgquery.Node) bool {
	if cast := n.GetTypeCast(); cast != nil {
		n = cast.Arg
	}
	if b, ok := n.GetAConst().GetVal().(*pgquery.A_Const_Boolval); ok {
		return b.Boolval.GetBoolval()
	}
	s, ok := text(n)
	if !ok {
		return false
	}
	switch strings.ToLower(strings.TrimSpace(s)) {
	case "t", "tr", "tru", "true", "y", "ye", "yes", "on", "1":
		return true
	}
	return false
}
