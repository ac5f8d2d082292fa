package config

import (
	"fmt"
	"strings"
)

// Problem is one thing that is wrong with a configuration.
type Problem struct {
	File       string // empty if it is not about a place in a file
	Line       int    // 0 if not known
	Key        string // with its table
	Message    string
	Suggestion string // a key or value that was probably meant
	Warning    bool   // it does not keep pgebb from starting
}

func (p Problem) String() string {
	var b strings.Builder
	if p.File != "" {
		b.WriteString(p.File + ":")
		if p.Line > 0 {
			fmt.Fprintf(&b, "%d:", p.Line)
		}
		b.WriteByte(' ')
	}
	if p.Key != "" {
		b.WriteString(p.Key + ": ")
	}
	b.WriteString(p.Message)
	if p.Suggestion != "" {
		fmt.Fprintf(&b, " (did you mean %q?)", p.Suggestion)
	}
	return b.String()
}

// Problems are all of them, in the order in which they were found.
type Problems []Problem

// Err returns an error that lists every problem that is not a warning, nil if there
// is none.
func (ps Problems) Err() error {
	var lines []string
	for _, p := range ps {
		if !p.Warning {
			lines = append(lines, p.String())
		}
	}
	if lines == nil {
		return nil
	}
	return fmt.Errorf("the configuration has %d problem(s):\n%s", len(lines), strings.Join(lines, "\n"))
}

// nearest returns the candidate that a misspelt word was probably meant to be, or
// the empty string.
func nearest(word string, candidates []string) string {
	best, distance := "", len(word)/3+1
	for _, c := range candidates {
		if d := editDistance(word, c); d <= distance && (best == "" || d < distance) {
			best, distance = c, d
		}
	}
	return best
}

// editDistance is how many letters must be put, dropped or replaced.
func editDistance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			above := row[j+1]
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			row[j+1] = min(row[j]+1, above+1, diagonal+cost)
			diagonal = above
		}
	}
	return row[len(b)]
}
