package config

import (
	"strings"

	"github.com/BurntSushi/toml"
)

// node is a table, an array or a value of a TOML file, with its place.
type node struct {
	line  int // where it first stands; 0 if it does not
	keys  map[string]*node
	items []*node // of an array
}

// at returns what stands under a key, an empty node if nothing does.
func (n *node) at(key string) *node {
	if n == nil || n.keys[key] == nil {
		return &node{}
	}
	return n.keys[key]
}

// child is at for something that is being added.
func (n *node) child(key string, line int) *node {
	if n.keys == nil {
		n.keys = map[string]*node{}
	}
	c := n.keys[key]
	if c == nil {
		c = &node{}
		n.keys[key] = c
	}
	if c.line == 0 {
		c.line = line
	}
	return c
}

func (n *node) add(line int) *node {
	item := &node{line: line}
	n.items = append(n.items, item)
	return item
}

// lineScanner finds out where keys stand, which the TOML package does not tell. It
// is for files that this package has accepted, so it does not look for errors; with
// other bytes it returns some lines or other.
type lineScanner struct {
	text string
	pos  int
	line int // of pos, from 1
}

// findLines returns the places of everything in a TOML file.
func findLines(text string) *node {
	s := &lineScanner{text: strings.TrimPrefix(text, "\ufeff"), line: 1}
	root := &node{}
	table := root
	for s.space(); s.pos < len(s.text); s.space() {
		if s.peek() == '[' {
			table = s.header(root)
		} else {
			s.pair(table)
		}
	}
	return root
}

// peek returns the next byte, 0 at the end.
func (s *lineScanner) peek() byte {
	if s.pos >= len(s.text) {
		return 0
	}
	return s.text[s.pos]
}

// next returns the next byte and goes on to the one behind it.
func (s *lineScanner) next() byte {
	c := s.peek()
	if c == '\n' {
		s.line++
	}
	s.pos = min(s.pos+1, len(s.text))
	return c
}

// space skips blanks, line ends and comments.
func (s *lineScanner) space() {
	for s.pos < len(s.text) {
		switch s.peek() {
		case ' ', '\t', '\r', '\n':
			s.next()
		case '#':
			for s.pos < len(s.text) && s.peek() != '\n' {
				s.next()
			}
		default:
			return
		}
	}
}

// header reads [a.b] or [[a.b]] and returns the table that it opens.
func (s *lineScanner) header(root *node) *node {
	line := s.line
	s.next()
	array := s.peek() == '['
	if array {
		s.next()
	}
	at := root
	path := s.path()
	for i, k := range path {
		at = at.child(k, line)
		switch n := len(at.items); {
		case array && i == len(path)-1:
			at = at.add(line)
		case n > 0:
			at = at.items[n-1]
		}
	}
	for s.peek() == ']' {
		s.next()
	}
	return at
}

// pair reads key = value.
func (s *lineScanner) pair(table *node) {
	at, line := table, s.line
	for _, k := range s.path() {
		at = at.child(k, line)
	}
	s.next() // the equals sign
	s.value(at)
}

// path reads the parts of a key.
func (s *lineScanner) path() []string {
	var parts []string
	for {
		s.space()
		switch s.peek() {
		case '"', '\'':
			parts = append(parts, s.quotedKey())
		default:
			start := s.pos
			for isBare(s.peek()) {
				s.next()
			}
			parts = append(parts, s.text[start:s.pos])
		}
		s.space()
		if s.peek() != '.' {
			return parts
		}
		s.next()
	}
}

func isBare(c byte) bool {
	return c != 0 && !strings.ContainsRune(" \t\r\n.=#[]{}\"',", rune(c))
}

// quotedKey reads a key in quotes.
func (s *lineScanner) quotedKey() string {
	start := s.pos
	s.quoted()
	raw := s.text[start:s.pos]
	var v struct{ K string }
	if _, err := toml.Decode("K = "+raw, &v); err != nil {
		return raw
	}
	return v.K
}

// quoted skips a string of any kind.
func (s *lineScanner) quoted() {
	quote := s.text[s.pos : s.pos+1]
	if strings.HasPrefix(s.text[s.pos:], strings.Repeat(quote, 3)) {
		quote = strings.Repeat(quote, 3)
	}
	s.pos += len(quote)
	for s.pos < len(s.text) {
		if strings.HasPrefix(s.text[s.pos:], quote) {
			s.pos += len(quote)
			for len(quote) == 3 && s.peek() == quote[0] { // up to two quotes may stand before the three
				s.pos++
			}
			return
		}
		if s.next() == '\\' && quote[0] == '"' {
			s.next()
		}
	}
	s.pos = len(s.text)
}

// value reads what stands behind an equals sign or in an array.
func (s *lineScanner) value(at *node) {
	s.space()
	switch s.peek() {
	case '"', '\'':
		s.quoted()
	case '[', '{':
		s.nested(at)
	default:
		s.next() // something, whatever it is
		for !strings.ContainsRune(",]}#\n\x00", rune(s.peek())) {
			s.next()
		}
	}
}

// nested reads an array or a table in braces.
func (s *lineScanner) nested(at *node) {
	array := s.next() == '['
	for {
		s.space()
		switch c := s.peek(); {
		case s.pos >= len(s.text):
			return
		case c == ']' || c == '}':
			s.next()
			return
		case c == ',':
			s.next()
		case array:
			s.value(at.add(s.line))
		default:
			s.pair(at)
		}
	}
}
