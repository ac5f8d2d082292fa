package main

import (
	"go/ast"
	"os"
	"testing"

	"github.com/pgebb/pgebb/internal/leak"
)

func TestMain(m *testing.M) { os.Exit(leak.Check(m)) }

func TestPackagesWithGoroutinesAreCheckedForLeaks(t *testing.T) {
	starts, tested, checked := map[string]string{}, map[string]bool{}, map[string]bool{}
	for _, f := range sources(t) {
		tested[f.pkg] = tested[f.pkg] || f.isTest
		for _, fn := range functions(f) {
			switch {
			case f.isTest && fn.Name.Name == "TestMain":
				checked[f.pkg] = calls(fn, "leak", "Check") || calls(fn, "testpg", "Main")
			case !f.isTest && startsGoroutine(fn):
				starts[f.pkg] = f.path + " " + fn.Name.Name
			}
		}
	}
	for pkg, where := range starts {
		if tested[pkg] && !checked[pkg] {
			t.Errorf("%s starts a goroutine, but the package's TestMain does not look for leaks with leak.Check or testpg.Main", where)
		}
	}
}

// startsGoroutine tells if a function has a go statement or calls a method Go, as that
// of a sync.WaitGroup.
func startsGoroutine(fn *ast.FuncDecl) bool {
	found := false
	ast.Inspect(fn, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.GoStmt:
			found = true
		case *ast.CallExpr:
			s, ok := n.Fun.(*ast.SelectorExpr)
			found = found || ok && s.Sel.Name == "Go"
		}
		return !found
	})
	return found
}
