// Command gendoc writes docs/configuration.md from the tags of package config. It is
// run by go generate; a test fails when the file is stale.
//
//	gendoc FILE
package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"strings"

	_ "embed"

	"github.com/pgebb/pgebb/config"
)

// head is what stands before the tables.
//
//go:embed head.md
var head string

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: gendoc FILE")
		os.Exit(2)
	}
	var b bytes.Buffer
	render(&b, config.Reference())
	if err := os.WriteFile(os.Args[1], b.Bytes(), 0o644); err != nil {
		fmt.Fprintln(os.Stderr, "gendoc:", err)
		os.Exit(1)
	}
}

// render writes the whole page.
func render(w io.Writer, tables []config.Table) {
	fmt.Fprint(w, head)
	for _, t := range tables {
		fmt.Fprintf(w, "\n## %s\n\n", title(t))
		fmt.Fprintf(w, "In `%s`: %s.\n\n", t.File, t.Doc)
		if t.Refused {
			fmt.Fprint(w, "**Refused**: pgebb does not have this, and does not start with it. The keys are known so that a misspelt one is found.\n\n")
		}
		fmt.Fprint(w, "| key | value | default | status | meaning |\n|---|---|---|---|---|\n")
		for _, k := range t.Keys {
			fmt.Fprintf(w, "| %s | %s | %s | %s | %s |\n", name(k), value(k), cell(k.Default), status(k), meaning(k))
		}
	}
}

func title(t config.Table) string {
	if t.List {
		return "`[[" + t.Name + "]]`"
	}
	return "`[" + t.Name + "]`"
}

// cell makes text fit for a cell of a table.
func cell(s string) string { return strings.ReplaceAll(s, "|", "\\|") }

func code(words []string) string { return "`" + strings.Join(words, "`, `") + "`" }

func name(k config.Key) string {
	s := "`" + k.Name + "`"
	if k.Alias != "" {
		s += "<br>also `" + k.Alias + "`"
	}
	if k.Env != "" {
		s += "<br>`" + k.Env + "`"
	}
	return s
}

func value(k config.Key) string {
	switch {
	case k.Values != nil:
		return code(k.Values)
	case k.Unit != "":
		return k.Unit
	}
	return k.Type
}

func status(k config.Key) string {
	s := k.Status
	if k.Planned {
		s += ", planned"
	}
	if k.Harmless != nil {
		s += "; accepted: " + code(k.Harmless)
	}
	return cell(s)
}

func meaning(k config.Key) string {
	s := cell(k.Doc)
	if k.Restart {
		s += " (needs a restart)"
	}
	if k.Own {
		s += " (not in PgDog)"
	}
	return s
}
