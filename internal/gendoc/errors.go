package main

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"strconv"
	"strings"
)

// clientError is an error that a client can get from pgebb itself.
type clientError struct{ code, severity, message, doc string }

// readErrors reads the functions of a file that make errors for clients.
func readErrors(path string) ([]clientError, error) {
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments)
	if err != nil {
		return nil, err
	}
	var list []clientError
	for _, decl := range file.Decls {
		fn, ok := decl.(*ast.FuncDecl)
		if !ok || fn.Recv != nil || !strings.HasPrefix(fn.Name.Name, "err") {
			continue
		}
		e, err := readError(fn)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", fn.Name.Name, err)
		}
		list = append(list, e)
	}
	slices.SortStableFunc(list, func(a, b clientError) int { return cmp.Compare(a.code, b.code) })
	return list, nil
}

// readError reads one: its comment, and the literal that it makes.
func readError(fn *ast.FuncDecl) (e clientError, err error) {
	doc := strings.Join(strings.Fields(fn.Doc.Text()), " ")
	_, doc, _ = strings.Cut(doc, " ") // the name of the function
	doc = strings.TrimPrefix(strings.TrimPrefix(doc, "is given "), "is ")
	e.doc = doc
	ast.Inspect(fn, func(n ast.Node) bool {
		pair, ok := n.(*ast.KeyValueExpr)
		if !ok {
			return true
		}
		switch key, _ := pair.Key.(*ast.Ident); key.Name {
		case "Severity":
			e.severity = said(pair.Value)
		case "Code":
			e.code = said(pair.Value)
		case "Message":
			e.message = said(pair.Value)
		}
		return true
	})
	if e.severity == "" || e.code == "" || e.message == "" || e.doc == "" {
		return e, fmt.Errorf("it has no severity, code, message or comment that can be read: %+v", e)
	}
	return e, nil
}

// verbs are the formats of a message, as a reader may take them.
var verbs = strings.NewReplacer("%q", `"…"`, "%s", "…", "%d", "N", "%v", "…", "%%", "%")

// said is what an expression comes to, as far as that is known.
func said(x ast.Expr) string {
	switch x := x.(type) {
	case *ast.BasicLit:
		s, _ := strconv.Unquote(x.Value)
		return verbs.Replace(s)
	case *ast.Ident:
		switch x.Name {
		case "severityError":
			return "ERROR"
		case "severityFatal":
			return "FATAL"
		case "severity":
			return "ERROR or FATAL"
		}
		return "(as Postgres has it)"
	case *ast.CallExpr:
		if len(x.Args) > 0 {
			if s := said(x.Args[0]); s != "" && s != "(as Postgres has it)" {
				return s
			}
		}
		return "(what is wrong)"
	case *ast.BinaryExpr:
		return said(x.X) + said(x.Y)
	}
	return ""
}
