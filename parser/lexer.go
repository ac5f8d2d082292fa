package parser

// token is what a lexer finds.
type token uint8

const (
	tokenEnd      token = iota
	tokenWord           // an identifier or a keyword, not in quotes
	tokenQuoted         // an identifier in double quotes
	tokenString         // a string constant of any kind but those with unicode escapes
	tokenNumber         //
	tokenParam          // $1
	tokenOperator       // a run of operator characters
	tokenOther          // any other character
)

// lexer splits an SQL text as Postgres does. It never fails; where the text can be read in
// two ways, or ends within a token, it says so.
type lexer struct {
	sql []byte
	at  int // up to where it has been read

	start, end int  // of the last token
	blank      bool // there was something between it and the one before
	doubtful   bool // what was read depends on settings, or is cut off
	unicode    bool // there were strings or names with unicode escapes
	hint       role // what comments said
}

// next finds the next token.
func (l *lexer) next() token {
	l.skip()
	l.start = l.at
	if l.at == len(l.sql) {
		l.end = l.at
		return tokenEnd
	}
	t := l.scan()
	l.end = l.at
	return t
}

func (l *lexer) scan() token {
	b := l.sql[l.at]
	switch class[b] {
	case classLetter:
		return l.word(b)
	case classDigit:
		l.number()
		return tokenNumber
	case classOperator:
		l.operator()
		return tokenOperator
	}
	switch b {
	case '\'':
		l.at++
		l.quoted('\'', false)
		return tokenString
	case '"':
		l.at++
		l.quoted('"', true)
		return tokenQuoted
	case '$':
		return l.dollar()
	case '.':
		if l.peek(1) >= '0' && l.peek(1) <= '9' {
			l.number()
			return tokenNumber
		}
	}
	l.at++
	return tokenOther
}

// peek is the byte n behind the present one, 0 behind the end.
func (l *lexer) peek(n int) byte {
	if l.at+n < len(l.sql) {
		return l.sql[l.at+n]
	}
	return 0
}

// skip goes past white space and comments.
func (l *lexer) skip() {
	l.blank = false
	for l.at < len(l.sql) {
		switch b := l.sql[l.at]; {
		case class[b] == classSpace:
			l.at++
		case b == '-' && l.peek(1) == '-':
			start := l.at
			l.at += 2
			for l.at < len(l.sql) && l.sql[l.at] != '\n' && l.sql[l.at] != '\r' {
				l.at++
			}
			l.comment(start)
		case b == '/' && l.peek(1) == '*':
			l.block()
		default:
			return
		}
		l.blank = true
	}
}

// block goes past a comment in C's style; they nest.
func (l *lexer) block() {
	start, depth := l.at, 0
	for l.at < len(l.sql) {
		switch {
		case l.sql[l.at] == '/' && l.peek(1) == '*':
			depth++
			l.at += 2
		case l.sql[l.at] == '*' && l.peek(1) == '/':
			depth--
			l.at += 2
			if depth == 0 {
				l.comment(start)
				return
			}
		default:
			l.at++
		}
	}
	l.doubtful = true
}

// word reads an identifier, or a string constant with a letter in front.
func (l *lexer) word(first byte) token {
	if q := l.peek(1); q == '\'' {
		switch first {
		case 'e', 'E':
			l.at += 2
			l.escaped()
			return tokenString
		case 'b', 'B', 'x', 'X', 'n', 'N':
			l.at += 2
			l.quoted('\'', true)
			return tokenString
		}
	} else if q == '&' && (first == 'u' || first == 'U') {
		switch l.peek(2) {
		case '\'':
			l.unicode = true
			l.at += 3
			l.quoted('\'', true)
			return tokenString
		case '"':
			l.unicode = true
			l.at += 3
			l.quoted('"', true)
			return tokenQuoted
		}
	}
	for l.at < len(l.sql) {
		c := class[l.sql[l.at]]
		if c != classLetter && c != classDigit && l.sql[l.at] != '$' {
			break
		}
		l.at++
	}
	return tokenWord
}

// quoted reads up to the closing quote; a doubled one stands for itself. Unless backslashes
// are known to have no meaning, one before a quote makes the text doubtful.
func (l *lexer) quoted(quote byte, plain bool) {
	for l.at < len(l.sql) {
		b := l.sql[l.at]
		l.at++
		switch {
		case b == '\\' && !plain && l.peek(0) == quote:
			l.doubtful = true // standard_conforming_strings decides
		case b != quote:
		case l.peek(0) == quote:
			l.at++
		default:
			return
		}
	}
	l.doubtful = true
}

// escaped reads a string constant in which backslashes have a meaning.
func (l *lexer) escaped() {
	for l.at < len(l.sql) {
		b := l.sql[l.at]
		l.at++
		switch {
		case b == '\\' && l.at < len(l.sql):
			l.at++
		case b != '\'':
		case l.peek(0) == '\'':
			l.at++
		default:
			return
		}
	}
	l.doubtful = true
}

// dollar reads a parameter, or a string constant between dollar signs.
func (l *lexer) dollar() token {
	n := 1
	if c := l.peek(1); class[c] == classDigit {
		for class[l.peek(n)] == classDigit {
			n++
		}
		l.at += n
		return tokenParam
	}
	for class[l.peek(n)] == classLetter || class[l.peek(n)] == classDigit {
		n++
	}
	if l.peek(n) != '$' {
		l.at++
		return tokenOther
	}
	tag := l.sql[l.at : l.at+n+1]
	l.at += n + 1
	for ; l.at+len(tag) <= len(l.sql); l.at++ {
		if l.sql[l.at] == '$' && string(l.sql[l.at:l.at+len(tag)]) == string(tag) {
			l.at += len(tag)
			return tokenString
		}
	}
	l.at = len(l.sql)
	l.doubtful = true
	return tokenString
}

// number reads a numeric constant.
func (l *lexer) number() {
	if l.sql[l.at] == '0' {
		if c := l.peek(1) | 0x20; c == 'x' || c == 'o' || c == 'b' {
			l.at += 2
			for c := class[l.peek(0)]; c == classDigit || c == classLetter && l.peek(0) < 0x80; c = class[l.peek(0)] {
				l.at++
			}
			return
		}
	}
	l.digits()
	if l.peek(0) == '.' && l.peek(1) != '.' {
		l.at++
		l.digits()
	}
	if l.peek(0)|0x20 != 'e' {
		return
	}
	n := 1
	if c := l.peek(1); c == '+' || c == '-' {
		n = 2
	}
	if class[l.peek(n)] == classDigit {
		l.at += n
		l.digits()
	}
}

func (l *lexer) digits() {
	for class[l.peek(0)] == classDigit || l.peek(0) == '_' && class[l.peek(1)] == classDigit {
		l.at++
	}
}

// operator reads a run of operator characters, up to a comment.
func (l *lexer) operator() {
	for l.at < len(l.sql) && class[l.sql[l.at]] == classOperator {
		if c := l.peek(1); l.sql[l.at] == '-' && c == '-' || l.sql[l.at] == '/' && c == '*' {
			return
		}
		l.at++
	}
}

// Classes of bytes.
const (
	classOther = iota
	classSpace
	classLetter
	classDigit
	classOperator
)

var class = func() (c [256]uint8) {
	for b := range c {
		switch {
		case isSpace(byte(b)):
			c[b] = classSpace
		case isLetter(byte(b)) || b >= 0x80:
			c[b] = classLetter
		case b >= '0' && b <= '9':
			c[b] = classDigit
		}
	}
	for _, b := range []byte("~!@#^&|`?+-*/%<>=") {
		c[b] = classOperator
	}
	return c
}()
