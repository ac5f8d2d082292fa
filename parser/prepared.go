package parser

import "bytes"

// Prepared is what an SQL text says of a prepared statement.
type Prepared struct {
	Prepares bool   // PREPARE name …; otherwise it is EXECUTE name …, or EXPLAIN … EXECUTE name …
	Name     string // as Postgres makes it of the identifier
	From, To int    // sql[From:To] is the identifier
	End      int    // sql[To:End] is the rest of the statement, up to a semicolon
	Alone    bool   // there is no other statement in the text
}

// Prepared reports whether the first statement of an SQL text is a PREPARE or an EXECUTE. The
// text may be cut off behind the name; End is then the end of what there is.
func (Scanner) Prepared(sql []byte) (p Prepared, ok bool) {
	word, rest := nextWord(sql)
	if equalFold(word, "explain") {
		word, rest = nextWord(skipExplainOptions(rest))
	}
	switch {
	case equalFold(word, "prepare"):
		p.Prepares = true
		if word, _ := nextWord(rest); equalFold(word, "transaction") {
			return Prepared{}, false // of the two-phase commit
		}
	case equalFold(word, "execute"):
	default:
		return Prepared{}, false
	}
	rest = skipBlank(rest)
	p.From = len(sql) - len(rest)
	name, _, rest, ok := identifier(rest)
	if !ok {
		return Prepared{}, false
	}
	p.Name = name
	p.To = len(sql) - len(rest)
	p.End = p.To + statementEnd(rest)
	p.Alone = len(skipBlank(sql[p.End:])) == 0
	return p, true
}

// skipExplainOptions goes past what can stand between EXPLAIN and the statement.
func skipExplainOptions(sql []byte) []byte {
	sql = skipBlank(sql)
	if len(sql) > 0 && sql[0] == '(' {
		if end := bytes.IndexByte(sql, ')'); end >= 0 {
			return sql[end+1:]
		}
		return nil
	}
	for {
		word, rest := nextWord(sql)
		if !equalFold(word, "analyze") && !equalFold(word, "analyse") && !equalFold(word, "verbose") {
			return sql
		}
		sql = rest
	}
}

// statementEnd is the index of the semicolon that ends a statement, or of the end of the
// text.
func statementEnd(sql []byte) int {
	for i := 0; i < len(sql); {
		switch c := sql[i]; {
		case c == ';':
			return i
		case c == '\'':
			escapes := i > 0 && sql[i-1]|0x20 == 'e' && (i < 2 || !isIdentifier(sql[i-2]))
			i += quoted(sql[i:], escapes)
		case c == '"':
			i += quoted(sql[i:], false)
		case c == '$' && (i == 0 || !isIdentifier(sql[i-1])):
			i += dollarQuoted(sql[i:])
		case c == '-' && i+1 < len(sql) && sql[i+1] == '-':
			i = len(sql) - len(skipLine(sql[i:]))
		case c == '/' && i+1 < len(sql) && sql[i+1] == '*':
			i = len(sql) - len(skipComment(sql[i:]))
		default:
			i++
		}
	}
	return len(sql)
}

// quoted is the length of a text in quotes, which are doubled within it. With
// standard_conforming_strings off a backslash escapes in all texts; then a semicolon behind
// an escaped quote is taken for the end of the statement, which Postgres refuses.
func quoted(sql []byte, escapes bool) int {
	for i := 1; i < len(sql); i++ {
		switch {
		case escapes && sql[i] == '\\':
			i++
		case sql[i] != sql[0]:
		case i+1 < len(sql) && sql[i+1] == sql[0]:
			i++
		default:
			return i + 1
		}
	}
	return len(sql)
}

// dollarQuoted is the length of a text between two equal tags such as $a$, or 1 if there is
// no tag.
func dollarQuoted(sql []byte) int {
	n := 1
	for n < len(sql) && isIdentifier(sql[n]) && sql[n] != '$' && (n > 1 || sql[n] < '0' || sql[n] > '9') {
		n++
	}
	if n == len(sql) || sql[n] != '$' {
		return 1
	}
	tag := sql[:n+1]
	if end := bytes.Index(sql[len(tag):], tag); end >= 0 {
		return len(tag) + end + len(tag)
	}
	return len(sql)
}

// isIdentifier reports bytes that an identifier can go on with.
func isIdentifier(b byte) bool {
	return isLetter(b) || b >= '0' && b <= '9' || b == '$' || b >= 0x80
}
