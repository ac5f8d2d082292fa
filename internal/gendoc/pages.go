package main

import (
	_ "embed"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5/pgtype"

	"github.com/pgebb/pgebb/admin"
)

// What stands at the top of the pages.
var (
	//go:embed console.md
	consoleHead string
	//go:embed metrics.md
	metricsHead string
	//go:embed errors.md
	errorsHead string
)

// cell makes text fit for a cell of a table.
func cell(s string) string { return strings.ReplaceAll(s, "|", "\\|") }

// typeNames are the types of columns.
var typeNames = map[uint32]string{
	pgtype.TextOID: "text", pgtype.NumericOID: "numeric", pgtype.Int8OID: "bigint", pgtype.Int4OID: "integer", pgtype.BoolOID: "boolean",
}

// columns lists columns, those of one type that stand together with it once.
func columns(all []admin.Column) string {
	var parts []string
	for i := 0; i < len(all); {
		j := i
		var names []string
		for ; j < len(all) && all[j].OID == all[i].OID; j++ {
			names = append(names, all[j].Name)
		}
		parts = append(parts, strings.Join(names, ", ")+" *"+typeNames[all[i].OID]+"*")
		i = j
	}
	return strings.Join(parts, "; ")
}

func console() string {
	var b strings.Builder
	b.WriteString(consoleHead)
	for _, part := range []struct {
		title string
		has   func(c admin.Reference) bool
	}{
		{"In both dialects", func(c admin.Reference) bool { return c.PgDog && c.Bouncer }},
		{"In PgDog's", func(c admin.Reference) bool { return c.PgDog && !c.Bouncer }},
		{"In PgBouncer's", func(c admin.Reference) bool { return c.Bouncer && !c.PgDog }},
	} {
		fmt.Fprintf(&b, "\n## %s\n", part.title)
		for _, c := range admin.Commands() {
			if !part.has(c) {
				continue
			}
			fmt.Fprintf(&b, "\n### %s\n\n", strings.Join(c.Names, ", "))
			if c.Args != "" {
				fmt.Fprintf(&b, "`%s %s`\n\n", c.Names[0], c.Args)
			}
			b.WriteString(c.Doc)
			if !c.ReadOnly {
				b.WriteString(" Not for stats users.")
			}
			b.WriteString("\n")
			if c.Columns != nil {
				fmt.Fprintf(&b, "\nColumns: %s.\n", columns(c.Columns))
			}
		}
	}
	return b.String()
}

func metrics() string {
	var b strings.Builder
	b.WriteString(metricsHead)
	for _, part := range []struct {
		title string
		ours  bool
	}{{"PgDog's", false}, {"pgebb's own", true}} {
		fmt.Fprintf(&b, "\n## %s\n\n| metric | type | labels | what it is |\n|---|---|---|---|\n", part.title)
		for _, f := range admin.Families() {
			if f.Ours == part.ours {
				fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", f.Name, f.Kind, strings.Join(f.Labels, ", "), cell(f.Doc))
			}
		}
	}
	b.WriteString("\n## PgDog's that there are not\n\n| metric | why |\n|---|---|\n")
	for _, n := range admin.NotExported() {
		fmt.Fprintf(&b, "| `%s` | %s |\n", n[0], n[1])
	}
	return b.String()
}

func errorPage(list []clientError) string {
	var b strings.Builder
	b.WriteString(errorsHead)
	b.WriteString("\n| SQLSTATE | severity | message | when |\n|---|---|---|---|\n")
	for _, e := range list {
		fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", e.code, e.severity, cell(e.message), cell(e.doc))
	}
	return b.String()
}
