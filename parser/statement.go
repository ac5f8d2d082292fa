package parser

import (
	"strconv"
	"strings"

	pgquery "github.com/pganalyze/pg_query_go/v6"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/pgebb/pgebb/internal/verdict"
)

// cursorHold is the option of DECLARE that is WITH HOLD (CURSOR_OPT_HOLD of Postgres).
const cursorHold = 0x0020

// statement says what kind of statement a RawStmt holds.
func (r *reader) statement(b []byte) error {
	kind, inner, err := stmtOf(b)
	if err != nil || kind == "" {
		return err
	}
	switch kind {
	case "SelectStmt":
		return nil // writes if something in it does
	case "TransactionStmt":
		return decode(inner, r.transaction)
	case "VariableSetStmt":
		return decode(inner, r.variable)
	case "ExplainStmt":
		return r.explained(inner)
	case "DeclareCursorStmt":
		return decode(inner, func(s *pgquery.DeclareCursorStmt) {
			if s.Options&cursorHold != 0 {
				r.v.Flags |= verdict.Write | verdict.Hold
			}
		})
	case "DiscardStmt":
		return decode(inner, r.discard)
	case "DeallocateStmt":
		return decode(inner, func(s *pgquery.DeallocateStmt) {
			r.v.Flags |= verdict.Write
			if s.Isall {
				r.v.Flags |= verdict.Discard
			}
		})
	}
	r.v.Flags |= verdict.Write | kinds[kind]
	r.body = r.body || kind == "DoStmt"
	return nil
}

// kinds are the flags of other statements.
var kinds = map[string]verdict.Flags{
	"CopyStmt":         verdict.Copy,
	"VariableShowStmt": verdict.Show,
	"NotifyStmt":       verdict.Notify,
	"ExecuteStmt":      verdict.Execute,
	"PrepareStmt":      verdict.Prepare,
	"ListenStmt":       verdict.Listen,
	"UnlistenStmt":     verdict.Unlisten,
}

// stmtOf finds the statement in a RawStmt: its kind, and its bytes.
func stmtOf(raw []byte) (kind string, b []byte, err error) {
	node := schema().fields[2].child.fields[1].child // ParseResult.stmts, RawStmt.stmt
	for len(raw) > 0 {
		n, typ, size := protowire.ConsumeTag(raw)
		if size < 0 {
			return "", nil, errTree
		}
		raw = raw[size:]
		if n != 1 || typ != protowire.BytesType {
			if size = protowire.ConsumeFieldValue(n, typ, raw); size < 0 {
				return "", nil, errTree
			}
			raw = raw[size:]
			continue
		}
		value, size := protowire.ConsumeBytes(raw)
		if size < 0 {
			return "", nil, errTree
		}
		num, _, tag := protowire.ConsumeTag(value)
		if tag < 0 || int(num) >= len(node.fields) || node.fields[num].child == nil {
			return "", nil, errTree
		}
		inner, size := protowire.ConsumeBytes(value[tag:])
		if size < 0 {
			return "", nil, errTree
		}
		return node.fields[num].child.name, inner, nil
	}
	return "", nil, nil
}

// decode makes a Go value of a statement.
func decode[T any, P interface {
	*T
	proto.Message
}](b []byte, use func(P)) error {
	s := P(new(T))
	if err := (proto.UnmarshalOptions{RecursionLimit: 10_000}).Unmarshal(b, s); err != nil {
		return errTree
	}
	use(s)
	return nil
}

func (r *reader) transaction(s *pgquery.TransactionStmt) {
	switch s.Kind {
	case pgquery.TransactionStmtKind_TRANS_STMT_BEGIN, pgquery.TransactionStmtKind_TRANS_STMT_START:
		r.v.Flags |= verdict.Begin
		for _, o := range s.Options {
			d := o.GetDefElem()
			if d.GetDefname() != "transaction_read_only" {
				continue
			}
			if d.GetArg().GetAConst().GetIval().GetIval() != 0 {
				r.v.Flags |= verdict.ReadOnly
			} else {
				r.v.Flags |= verdict.ReadWrite
			}
		}
	case pgquery.TransactionStmtKind_TRANS_STMT_COMMIT, pgquery.TransactionStmtKind_TRANS_STMT_ROLLBACK:
		r.v.Flags |= verdict.End
	case pgquery.TransactionStmtKind_TRANS_STMT_PREPARE:
		r.v.Flags |= verdict.Write | verdict.End
	case pgquery.TransactionStmtKind_TRANS_STMT_COMMIT_PREPARED, pgquery.TransactionStmtKind_TRANS_STMT_ROLLBACK_PREPARED:
		r.v.Flags |= verdict.Write
	default:
		r.v.Flags |= verdict.Savepoint
	}
}

// variable looks at SET and RESET.
func (r *reader) variable(s *pgquery.VariableSetStmt) {
	r.v.Flags |= verdict.Write
	set := verdict.Setting{Name: s.Name, Local: s.IsLocal}
	switch s.Kind {
	case pgquery.VariableSetKind_VAR_RESET_ALL:
		r.v.Flags |= verdict.Settings | verdict.Unnamed
		return
	case pgquery.VariableSetKind_VAR_SET_MULTI:
		if s.Name == "SESSION CHARACTERISTICS" {
			for _, name := range []string{"default_transaction_isolation", "default_transaction_read_only", "default_transaction_deferrable"} {
				r.set(verdict.Setting{Name: name})
			}
		}
		return // of the transaction
	case pgquery.VariableSetKind_VAR_RESET, pgquery.VariableSetKind_VAR_SET_DEFAULT:
		set.Reset = true
	case pgquery.VariableSetKind_VAR_SET_VALUE:
		set.Value, set.Known = values(s.Args)
		r.temp = r.temp || strings.Contains(set.Value, "pg_temp") // where tables are made from then on
	}
	r.set(set)
}

// values puts the values of a SET together as set_config takes them.
func values(args []*pgquery.Node) (string, bool) {
	var all []string
	for _, a := range args {
		v, ok := value(a)
		if !ok {
			return "", false
		}
		if len(args) > 1 {
			v = `"` + strings.ReplaceAll(v, `"`, `""`) + `"`
		}
		all = append(all, v)
	}
	return strings.Join(all, ", "), len(all) > 0
}

func value(n *pgquery.Node) (string, bool) {
	switch v := n.GetAConst().GetVal().(type) {
	case *pgquery.A_Const_Sval:
		return v.Sval.GetSval(), true
	case *pgquery.A_Const_Ival:
		return strconv.Itoa(int(v.Ival.GetIval())), true
	case *pgquery.A_Const_Fval:
		return v.Fval.GetFval(), true
	}
	return "", false
}

func (r *reader) discard(s *pgquery.DiscardStmt) {
	r.v.Flags |= verdict.Write
	if s.Target == pgquery.DiscardMode_DISCARD_ALL {
		r.v.Flags |= verdict.Settings | verdict.Unnamed | verdict.Discard | verdict.Unlisten | verdict.Lock
	}
}

// explained looks at an EXPLAIN: it writes if it carries out what does, which what is
// below the node tells, or if it explains what makes something.
func (r *reader) explained(b []byte) error {
	return decode(b, func(s *pgquery.ExplainStmt) {
		if s.Query.GetSelectStmt() == nil {
			r.v.Flags |= verdict.Write
		}
	})
}
