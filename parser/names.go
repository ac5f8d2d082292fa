package parser

import (
	"bytes"
	"strings"

	"github.com/pgebb/pgebb/internal/verdict"
)

// maxNames is how many bytes of names are looked for in a text that is judged by its words, and
// namesDepth how deep in strings within strings.
const (
	maxNames   = 64 << 10
	namesDepth = 3
)

// customNames are the run-time parameters with a dot in their name that a text may set, by
// SET, RESET or set_config, at its own level or in its strings, such as the body of a DO. Postgres does
// not list those that no extension has defined, so they have to be asked for by name. One that is
// found for nothing does no harm. Names that are computed are not found.
func customNames(sql []byte) []verdict.Setting {
	n := nameSearch{}
	n.look(sql, 0)
	return n.found
}

// nameSearch is a search for names.
type nameSearch struct {
	found []verdict.Setting
	seen  map[string]bool
	bytes int
	parts []string // of the name at hand
	after nameState
}

// nameState is what is expected in a search.
type nameState uint8

const (
	nameNone     nameState = iota
	namePart               // behind SET or RESET, or behind a dot
	nameDot                // behind a part
	nameBracket            // behind set_config
	nameConstant           // behind its parenthesis
)

func (n *nameSearch) look(sql []byte, depth int) {
	l := lexer{sql: sql}
	for t := l.next(); t != tokenEnd; t = l.next() {
		raw := sql[l.start:l.end]
		switch t {
		case tokenWord, tokenQuoted:
			n.word(raw, t == tokenQuoted)
		case tokenString:
			text := constantText(raw)
			if n.after == nameConstant {
				n.parts = append(n.parts[:0], text)
			}
			n.end()
			if depth < namesDepth && strings.Contains(text, ".") {
				n.look([]byte(text), depth+1)
				n.end()
			}
		default:
			n.other(raw)
		}
	}
	n.end()
}

// word deals with a word, or a name in quotes.
func (n *nameSearch) word(raw []byte, quoted bool) {
	if n.after == nameDot && len(n.parts) == 1 && (n.parts[0] == "session" || n.parts[0] == "local") {
		n.after, n.parts = namePart, n.parts[:0]
	}
	switch {
	case n.after == namePart:
		n.after, n.parts = nameDot, append(n.parts, nameText(raw, quoted))
		return
	case n.after == nameDot:
		n.end()
	}
	n.after = nameNone
	switch {
	case quoted:
	case equalFold(raw, "set"), equalFold(raw, "reset"):
		n.after, n.parts = namePart, n.parts[:0]
	case bytes.EqualFold(raw, []byte("set_config")):
		n.after = nameBracket
	}
}

// other deals with anything else.
func (n *nameSearch) other(raw []byte) {
	switch {
	case n.after == nameDot && string(raw) == ".":
		n.after = namePart
	case n.after == nameBracket && string(raw) == "(":
		n.after, n.parts = nameConstant, n.parts[:0]
	default:
		n.end()
	}
}

// end takes the name that was found, if it is a custom one.
func (n *nameSearch) end() {
	name := strings.ToLower(strings.Join(n.parts, "."))
	complete := n.after == nameDot || n.after == nameConstant
	n.after, n.parts = nameNone, n.parts[:0]
	if !complete || !strings.Contains(name, ".") || n.seen[name] || n.bytes+len(name) > maxNames {
		return
	}
	if n.seen == nil {
		n.seen = map[string]bool{}
	}
	n.seen[name] = true
	n.bytes += len(name)
	n.found = append(n.found, verdict.Setting{Name: name})
}

// nameText is an identifier without its quotes.
func nameText(raw []byte, quoted bool) string {
	if !quoted {
		return strings.ToLower(string(raw))
	}
	return strings.ReplaceAll(strings.Trim(string(raw), `"`), `""`, `"`)
}

// constantText is what is between the quotes of a string constant. Of its escapes, only the
// doubled quote is undone.
func constantText(raw []byte) string {
	start := bytes.IndexAny(raw, `'$`)
	if start < 0 {
		return ""
	}
	if raw[start] == '\'' {
		return strings.ReplaceAll(string(bytes.TrimSuffix(raw[start+1:], []byte("'"))), "''", "'")
	}
	tag := bytes.IndexByte(raw[start+1:], '$') + start + 2
	if tag <= start+1 {
		return ""
	}
	return string(bytes.TrimSuffix(raw[tag:], raw[start:tag]))
}
