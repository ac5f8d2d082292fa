package main

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"github.com/pgebb/pgebb/config"
)

func TestDocsAreUpToDate(t *testing.T) {
	var want bytes.Buffer
	render(&want, config.Reference())
	got, err := os.ReadFile("../../../docs/configuration.md")
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want.Bytes()) {
		t.Error("docs/configuration.md is stale: run go generate ./config")
	}
}

func TestRowsOfTables(t *testing.T) {
	var b bytes.Buffer
	render(&b, []config.Table{{Name: "a", File: "f", Doc: "what it is", List: true, Refused: true, Keys: []config.Key{
		{Name: "k", Alias: "l", Env: "E", Type: "string", Default: "x|y", Status: "refused", Planned: true, Restart: true, Own: true,
			Values: []string{"x", "y"}, Harmless: []string{"z"}, Doc: "this|that"},
		{Name: "n", Type: "number", Unit: "ms", Default: "none", Status: "implemented", Doc: "a time"},
	}}})
	want := "\n## `[[a]]`\n\nIn `f`: what it is.\n\n" +
		"**Refused**: pgebb does not have this, and does not start with it. The keys are known so that a misspelt one is found.\n\n" +
		"| key | value | default | status | meaning |\n|---|---|---|---|---|\n" +
		"| `k`<br>also `l`<br>`E` | `x`, `y` | x\\|y | refused, planned; accepted: `z` | this\\|that (needs a restart) (not in PgDog) |\n" +
		"| `n` | ms | none | implemented | a time |\n"
	if got := strings.TrimPrefix(b.String(), head); got != want {
		t.Errorf("the tables are\n%s\nwant\n%s", got, want)
	}
}
