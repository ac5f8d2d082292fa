package querylog

import (
	"bytes"
	"slices"
	"strconv"
)

// A password stands in SQL behind the word PASSWORD: CREATE and ALTER ROLE, USER and GROUP,
// and OPTIONS of user mappings. Connection strings have it as password=. The text is
// not taken apart to find the word, because what a quote or a comment is depends on settings
// of the session (standard_conforming_strings): whatever looks like the word counts, and
// where it is not clear how far the value goes, more is left out. So in doubt too much
// is missing in the log, and never too little.

// mask is what stands there instead.
const mask = "'***'"

var password = []byte("password")

// appendMasked appends a text in quotes, without what follows the word PASSWORD.
func appendMasked(b, text []byte) []byte {
	if findPassword(text) < 0 {
		return strconv.AppendQuote(b, string(text))
	}
	return strconv.AppendQuote(b, string(masked(text)))
}

// masked is a text without what follows the word PASSWORD. Every place of the word counts, also
// one in what another has hidden already, or gone past: that may have been no value, or no
// comment.
func masked(text []byte) []byte {
	type span struct{ from, to int }
	var hidden []span
	for at := 0; ; {
		i := findPassword(text[at:])
		if i < 0 {
			break
		}
		at += i + len(password)
		if from, to, ok := value(text[at:]); ok {
			hidden = append(hidden, span{at + from, at + to})
		}
	}
	slices.SortFunc(hidden, func(a, b span) int { return a.from - b.from })
	var out []byte
	shown := 0 // text[:shown] is dealt with
	for _, h := range hidden {
		if h.from >= shown {
			out = append(append(out, text[shown:h.from]...), mask...)
		}
		shown = max(shown, h.to)
	}
	return append(out, text[shown:]...)
}

// findPassword is the index of the next word PASSWORD, -1 if there is none.
func findPassword(text []byte) int {
	for i := 0; i+len(password) <= len(text); i++ {
		if text[i]|0x20 == 'p' && bytes.EqualFold(text[i:i+len(password)], password) {
			return i
		}
	}
	return -1
}

// value finds the value behind the word: b[from:to]. ok is false if there is none.
func value(b []byte) (from, to int, ok bool) {
	i := 0
	if i < len(b) && b[i] == '"' { // the word was in quotes itself
		i++
	}
	i = space(b, i)
	assigned := false
	if i < len(b) && b[i] == '=' {
		assigned = true
		i = space(b, i+1)
	}
	if i == len(b) {
		return 0, 0, false
	}
	from = i
	prefix := prefixLength(b[i:])
	switch c := b[i+prefix]; {
	case bytes.HasPrefix(b[i+prefix:], []byte("''")):
		return from, len(b), true // perhaps no empty one, but doubled quotes, in a text that is in quotes itself
	case c == '\'':
		return from, literal(b, i+prefix, prefix > 0 && b[i]|0x20 == 'e'), true
	case prefix == 0 && c == '$':
		to, ok = dollarQuoted(b, i)
		return from, to, ok
	case assigned:
		return from, i + bare(b[i:]), true
	}
	return 0, 0, false
}

// space goes past white space and comments. A comment that does not end goes on up to the
// end.
func space(b []byte, i int) int {
	for i < len(b) {
		switch {
		case b[i] == ' ' || b[i] >= '\t' && b[i] <= '\r':
			i++
		case bytes.HasPrefix(b[i:], []byte("--")):
			n := bytes.IndexAny(b[i:], "\r\n")
			if n < 0 {
				return len(b)
			}
			i += n
		case bytes.HasPrefix(b[i:], []byte("/*")):
			i = comment(b, i)
		default:
			return i
		}
	}
	return i
}

// comment goes past a comment, and those inside of it.
func comment(b []byte, i int) int {
	for depth := 0; i < len(b); {
		switch {
		case bytes.HasPrefix(b[i:], []byte("/*")):
			depth++
			i += 2
		case bytes.HasPrefix(b[i:], []byte("*/")):
			depth--
			i += 2
			if depth == 0 {
				return i
			}
		default:
			i++
		}
	}
	return i
}

// prefixLength is how long that is which stands in front of the quote of a literal: E, N,
// B, X or U&.
func prefixLength(b []byte) int {
	switch {
	case len(b) > 2 && b[0]|0x20 == 'u' && b[1] == '&' && b[2] == '\'':
		return 2
	case len(b) > 1 && bytes.IndexByte([]byte("enbx"), b[0]|0x20) >= 0 && b[1] == '\'':
		return 1
	}
	return 0
}

// literal is the end of one that begins with a quote at i, with those that continue it. In one
// without escapes a backslash in front of a quote can still be an escape, so
// everything behind it counts as the value.
func literal(b []byte, i int, escapes bool) int {
	for i++; i < len(b); i++ {
		switch {
		case b[i] == '\\' && escapes:
			i++
		case b[i] == '\\' && i+1 < len(b) && b[i+1] == '\'':
			return len(b)
		case b[i] != '\'':
		case i+1 < len(b) && b[i+1] == '\'':
			i++
		default:
			next := space(b, i+1)
			if next == len(b) || b[next] != '\'' {
				return i + 1
			}
			i = next
		}
	}
	return len(b)
}

// dollarQuoted is the end of a literal in dollar quotes that begins at i; ok is false if
// it is a parameter, which has no value here.
func dollarQuoted(b []byte, i int) (end int, ok bool) {
	if i+1 < len(b) && b[i+1] >= '0' && b[i+1] <= '9' {
		return 0, false
	}
	n := bytes.IndexByte(b[i+1:], '$')
	if n < 0 {
		return len(b), true // it is cut off
	}
	tag := b[i : i+1+n+1]
	from := i + len(tag)
	n = bytes.Index(b[from:], tag)
	if n < 0 {
		return len(b), true
	}
	return from + n + len(tag), true
}

// bare is the length of a value without quotes, as connection strings have it.
func bare(b []byte) int {
	if n := bytes.IndexAny(b, " \t\r\n',;)\"&"); n >= 0 {
		return n
	}
	return len(b)
}
