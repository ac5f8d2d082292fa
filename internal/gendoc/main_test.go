package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestDocsAreUpToDate(t *testing.T) {
	pages, err := render(filepath.Join("..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range pages {
		got, err := os.ReadFile(filepath.Join("..", "..", "docs", name))
		if err != nil {
			t.Fatal(err)
		}
		if string(got) != want {
			t.Errorf("docs/%s is stale: run make docs", name)
		}
	}
}

func TestErrorsAreReadFromTheSource(t *testing.T) {
	path := filepath.Join(t.TempDir(), "errors.go")
	write := func(text string) {
		if err := os.WriteFile(path, []byte("package p\n"+text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(`
// errB is for what
// is b|c.
func errB(x string) *Error {
	return &Error{Severity: severityFatal, Code: "22000", Message: fmt.Sprintf("b %q is %d%%", x, 1)}
}

// errA refuses a.
func errA() *Error { return &Error{Severity: severityError, Code: "11000", Message: "a"} }

func helper() {}
`)
	list, err := readErrors(path)
	if err != nil {
		t.Fatal(err)
	}
	page := errorPage(list)
	want := "| 11000 | ERROR | a | refuses a. |\n| 22000 | FATAL | b \"…\" is N% | for what is b\\|c. |\n"
	if !strings.HasSuffix(page, want) {
		t.Errorf("the page is\n%s\nwant at its end\n%s", page, want)
	}
	write("// errA is for a.\nfunc errA() *Error { return nil }\n")
	if _, err := readErrors(path); err == nil {
		t.Error("an error without code and message is taken")
	}
}
