// Command gendoc writes docs/console.md, docs/metrics.md and docs/errors.md from the
// commands and metrics of package admin and from frontend/errors.go. It is run by go
// generate; a test fails when a file is stale.
//
//	gendoc FOLDER
//
// FOLDER is that of the documents, in the module's root.
package main

import (
	"fmt"
	"os"
	"path/filepath"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: gendoc FOLDER")
		os.Exit(2)
	}
	pages, err := render(filepath.Join(os.Args[1], ".."))
	if err == nil {
		for name, text := range pages {
			if err = os.WriteFile(filepath.Join(os.Args[1], name), []byte(text), 0o644); err != nil {
				break
			}
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "gendoc:", err)
		os.Exit(1)
	}
}

// render makes the pages, by the names of their files. root is the module's.
func render(root string) (map[string]string, error) {
	list, err := readErrors(filepath.Join(root, "frontend", "errors.go"))
	if err != nil {
		return nil, err
	}
	return map[string]string{"console.md": console(), "metrics.md": metrics(), "errors.md": errorPage(list)}, nil
}
