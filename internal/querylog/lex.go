package querylog

import "bytes"

// This file finds the ends of what SQL consists of, as Postgres does.

// space goes past white space and comments. A comment that does not end goes on up to the
// end.
func space(b []byte, i int) int {
	for i < len(b) {
		switch {
		case blank(b[i]):
			i++
		case bytes.HasPrefix(b[i:], []byte("--")):
			n := bytes.IndexAny(b[i:], "\r\n")
			if n < 0 {
				return len(b)
			}
			i += n
		case bytes.HasPrefix(b[i:], []byte("/*")):
			if i = comment(b, i); i < 0 {
				return len(b)
			}
		default:
			return i
		}
	}
	return i
}

// comment is the end of a comment that begins at i, with those inside of it; -1 if it has none.
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
	return -1
}

// literal is the end of one whose quote is at i, -1 if it has none. It is not sure where a backslash
// may be in front of a quote or may not: one without escapes has them without
// standard_conforming_strings, and behind a byte that is not ASCII a backslash may be
// a part of a character (SJIS, GBK).
func literal(b []byte, i int, escapes bool) (end int, sure bool) {
	for i++; i < len(b); i++ {
		switch c := b[i]; {
		case c == '\\' && escapes:
			if b[i-1] >= 0x80 {
				return 0, false
			}
			i++
		case c == '\\' && i+1 < len(b) && b[i+1] == '\'':
			return 0, false
		case c != '\'':
		case i+1 < len(b) && b[i+1] == '\'':
			i++
		default:
			return i + 1, true
		}
	}
	return -1, true
}

// quotedName is the end of a name whose quote is at i, -1 if it has none.
func quotedName(b []byte, i int) int {
	for i++; i < len(b); i++ {
		switch {
		case b[i] != '"':
		case i+1 < len(b) && b[i+1] == '"':
			i++
		default:
			return i + 1
		}
	}
	return -1
}

// operator is how long an operator at the beginning of b is; 0 if there is none. A comment ends it,
// and so does a URL.
func operator(b []byte) int {
	for n := range b {
		if bytes.IndexByte([]byte("=<>~!|+-*/%^&@#?:`"), b[n]) < 0 || bytes.HasPrefix(b[n:], []byte("--")) ||
			bytes.HasPrefix(b[n:], []byte("/*")) || bytes.HasPrefix(b[n:], []byte("://")) {
			return n
		}
	}
	return len(b)
}

// mayFollow reports whether b can go on behind a constant. Postgres takes more, but anything else
// is a sign that the constant was none.
func mayFollow(b []byte) bool {
	if len(b) == 0 || blank(b[0]) || bytes.IndexByte([]byte(",;)]"), b[0]) >= 0 {
		return true
	}
	for _, s := range []string{"::", "||", "--", "/*"} {
		if bytes.HasPrefix(b, []byte(s)) {
			return true
		}
	}
	return false
}

// is reports whether a word is one of those, in whatever case.
func is(w []byte, words ...string) bool {
	for _, s := range words {
		if len(w) == len(s) && bytes.EqualFold(w, []byte(s)) {
			return true
		}
	}
	return false
}

// inName reports whether names and numbers consist of such bytes.
func inName(c byte) bool { return letter(c) || digit(c) || c == '_' || c >= 0x80 }

func digit(c byte) bool { return c >= '0' && c <= '9' }

func blank(c byte) bool { return c == ' ' || c >= '\t' && c <= '\r' }
