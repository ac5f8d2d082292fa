package main

import (
	"go/ast"
	"slices"
	"testing"
)

const (
	maxFileLines     = 500
	maxFunctionLines = 70
)

// longFunctions are those that may be longer, and why. An entry that is not needed any
// more is an error.
var longFunctions = map[string]string{}

// sleepers are the functions outside of tests that may sleep, and why.
var sleepers = map[string]string{
	"internal/bench/measure.go idle":     "clients that do nothing for a while are what is measured",
	"internal/bench/rig.go startBouncer": "PgBouncer does not tell when it is ready",
	"internal/workload/loads.go pause":   "clients that do nothing for a while are what is measured",
	"internal/testpg/replica.go waitFor": "nothing tells that a replica has replayed something",
	"internal/leak/leak.go gone":         "nothing tells that a goroutine has ended",
}

// printers are the packages whose standard output is what they are for.
var printers = []string{"cmd/pgebb", "internal/bench", "internal/demo"}

func TestFilesAndFunctionsAreShort(t *testing.T) {
	used := map[string]bool{}
	for _, f := range sources(t) {
		if f.lines > maxFileLines {
			t.Errorf("%s has %d lines, more than %d: it has more than one idea", f.path, f.lines, maxFileLines)
		}
		for _, fn := range functions(f) {
			lines := span(f, fn)
			if f.isTest {
				lines -= tables(f, fn)
			}
			if lines <= maxFunctionLines {
				continue
			}
			name := f.path + " " + fn.Name.Name
			if longFunctions[name] == "" {
				t.Errorf("%s has %d lines, more than %d", name, lines, maxFunctionLines)
			}
			used[name] = true
		}
	}
	complainOfUnused(t, "longFunctions", longFunctions, used)
}

func TestNobodySleepsToMakeThingsWork(t *testing.T) {
	used := map[string]bool{}
	for _, f := range sources(t) {
		if f.isTest {
			continue
		}
		for _, fn := range functions(f) {
			if !calls(fn, "time", "Sleep") {
				continue
			}
			name := f.path + " " + fn.Name.Name
			if sleepers[name] == "" {
				t.Errorf("%s sleeps: wait for what you are waiting for", name)
			}
			used[name] = true
		}
	}
	complainOfUnused(t, "sleepers", sleepers, used)
}

func TestOnlyCommandsPrint(t *testing.T) {
	for _, f := range sources(t) {
		if slices.Contains(printers, f.pkg) {
			continue
		}
		for _, fn := range functions(f) {
			if calls(fn, "fmt", "Print", "Printf", "Println") {
				t.Errorf("%s %s prints to standard output: return it, or log it", f.path, fn.Name.Name)
			}
		}
	}
}

// span is the number of lines of a node.
func span(f source, n ast.Node) int {
	return f.fileSet.Position(n.End()).Line - f.fileSet.Position(n.Pos()).Line + 1
}

// tables is the number of lines in a function that are tables: data, not code.
func tables(f source, fn *ast.FuncDecl) int {
	lines := 0
	ast.Inspect(fn, func(n ast.Node) bool {
		table, ok := n.(*ast.CompositeLit)
		if ok {
			lines += span(f, table) - 1
		}
		return !ok
	})
	return lines
}

func functions(f source) []*ast.FuncDecl {
	var all []*ast.FuncDecl
	for _, decl := range f.Decls {
		if fn, ok := decl.(*ast.FuncDecl); ok {
			all = append(all, fn)
		}
	}
	return all
}

// calls tells if a function mentions one of the given names of a package.
func calls(fn *ast.FuncDecl, pkg string, names ...string) bool {
	found := false
	ast.Inspect(fn, func(n ast.Node) bool {
		if s, ok := n.(*ast.SelectorExpr); ok && slices.Contains(names, s.Sel.Name) {
			id, ok := s.X.(*ast.Ident)
			found = found || ok && id.Name == pkg
		}
		return !found
	})
	return found
}

func complainOfUnused(t *testing.T, list string, entries map[string]string, used map[string]bool) {
	t.Helper()
	for name := range entries {
		if !used[name] {
			t.Errorf("%s: %s needs no exception any more", list, name)
		}
	}
}
