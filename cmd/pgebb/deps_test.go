package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const module = "github.com/pgebb/pgebb"

// imports says which packages of this module a package may import. Imports go one way:
// from what faces clients, over what faces servers, to the leaves.
var imports = map[string][]string{
	"internal/memory":   nil,
	"internal/wire":     nil,
	"internal/scram":    nil,
	"internal/verdict":  nil,
	"internal/loop":     {"internal/memory"},
	"internal/querylog": {"internal/memory"},
	"config":            nil,
	"internal/secrets":  {"config", "internal/memory"},
	"cache":             {"internal/memory"},
	"parser":            {"cache", "internal/memory", "internal/verdict"},
	"backend":           {"cache", "config", "internal/loop", "internal/memory", "internal/scram", "internal/verdict", "internal/wire"},
	"pool":              {"backend", "cache", "config", "internal/loop", "internal/memory", "internal/secrets", "internal/verdict"},
	"frontend":          {"backend", "cache", "config", "internal/loop", "internal/memory", "internal/querylog", "internal/scram", "internal/verdict", "internal/wire", "pool"},
	"admin":             {"config", "internal/memory"},
	"cmd/pgebb":         {"admin", "backend", "cache", "config", "frontend", "internal/loop", "internal/memory", "internal/querylog", "internal/scram", "internal/secrets", "internal/verdict", "internal/wire", "parser", "pool"},
}

// tools are what serves the tests, the benchmark and the demo. They may import anything;
// of what pgebb is made of, only tests may import them.
var tools = []string{
	"backend/backendtest",
	"config/internal/gendoc",
	"deploy",
	"frontend/frontendtest",
	"internal/bench",
	"internal/demo",
	"internal/e2e",
	"internal/gendoc",
	"internal/leak",
	"internal/testcert",
	"internal/testlog",
	"internal/testpg",
	"internal/withpg",
	"internal/workload",
}

// source is a Go file of the module.
type source struct {
	path    string // from the module's root, with slashes
	pkg     string // folder of path
	isTest  bool
	lines   int
	fileSet *token.FileSet
	*ast.File
}

// sources parses all Go files of the module.
func sources(t *testing.T) []source {
	t.Helper()
	const root = "../.."
	var all []source
	err := filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && name != root && (strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata" || d.Name() == "node_modules") {
			return fs.SkipDir
		}
		if d.IsDir() || !strings.HasSuffix(name, ".go") {
			return nil
		}
		rel, err := filepath.Rel(root, name)
		if err != nil {
			return err
		}
		set := token.NewFileSet()
		file, err := parser.ParseFile(set, name, nil, parser.ParseComments)
		if err != nil {
			return err
		}
		rel = filepath.ToSlash(rel)
		all = append(all, source{
			path: rel, pkg: path.Dir(rel), isTest: strings.HasSuffix(rel, "_test.go"),
			lines: set.File(file.Pos()).LineCount(), fileSet: set, File: file,
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(all) < 50 {
		t.Fatalf("only %d Go files are found", len(all))
	}
	return all
}

func TestImportsGoOneWay(t *testing.T) {
	for _, f := range sources(t) {
		allowed, known := imports[f.pkg]
		isTool := slices.Contains(tools, f.pkg)
		if !known && !isTool {
			t.Errorf("%s: package %s is in neither list of deps_test.go", f.path, f.pkg)
		}
		for _, spec := range f.Imports {
			imported, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				t.Fatal(err)
			}
			local, ours := strings.CutPrefix(imported, module+"/")
			if !ours || isTool || slices.Contains(allowed, local) {
				continue
			}
			if f.isTest && (local == f.pkg || slices.Contains(tools, local)) {
				continue
			}
			t.Errorf("%s imports %s, which package %s may not", f.path, local, f.pkg)
		}
	}
}

func TestTheListOfImportsIsThatOfTheArchitecture(t *testing.T) {
	documented := map[string][]string{}
	for _, m := range regexp.MustCompile(`(?m)^(\S+) +→ (.*)$`).FindAllStringSubmatch(read(t, "docs/architecture.md"), -1) {
		documented[m[1]] = strings.Split(m[2], ", ")
	}
	for pkg, want := range imports {
		switch {
		case len(want) == 0:
			want = []string{"–"}
		case len(want) == len(imports)-1:
			want = []string{"all"}
		}
		if !slices.Equal(documented[pkg], want) {
			t.Errorf("docs/architecture.md says that %s may import %q, the list here %q", pkg, documented[pkg], want)
		}
		delete(documented, pkg)
	}
	if len(documented) > 0 {
		t.Errorf("docs/architecture.md has what is not in the list: %q", documented)
	}
}

func TestTheListOfImportsHasNoCycle(t *testing.T) {
	const visiting, done = 1, 2
	state := map[string]int{}
	var visit func(trail []string, pkg string)
	visit = func(trail []string, pkg string) {
		switch state[pkg] {
		case visiting:
			t.Errorf("the list has a cycle: %s", strings.Join(append(trail, pkg), " → "))
			return
		case done:
			return
		}
		state[pkg] = visiting
		for _, next := range imports[pkg] {
			visit(append(trail, pkg), next)
		}
		state[pkg] = done
	}
	for pkg := range imports {
		visit(nil, pkg)
	}
}

func TestEveryPackageHasOnePackageComment(t *testing.T) {
	comments, packages := map[string][]string{}, map[string]bool{}
	for _, f := range sources(t) {
		if f.isTest && f.pkg != "internal/e2e" {
			continue
		}
		packages[f.pkg] = true
		if f.Doc != nil {
			comments[f.pkg] = append(comments[f.pkg], f.path)
		}
	}
	for pkg := range packages {
		if len(comments[pkg]) != 1 {
			t.Errorf("package %s has its comment in %d files %v, want one", pkg, len(comments[pkg]), comments[pkg])
		}
	}
}
