// Package parser knows what an SQL text means for a pooler: where it may run, and what it
// may leave behind in its session.
//
// [Judge] makes verdicts: from the words of a text where those are enough, from the parser
// of Postgres (libpg_query, in C) where they are not. It keeps verdicts, and the trees that they come
// from as the bytes of libpg_query, under the text without its constants. [Scanner] is a look at the first
// words only. Nothing here does I/O or knows a connection.
//
// The caveat that bites: C code that runs out of stack ends the process. limits.go says
// what keeps clients from that, crash_test.go that it does; a text beyond those limits is
// judged by its words, on the safe side.
package parser

// Scanner recognises statements by their first words. The zero value is ready.
type Scanner struct{}

// BeginsTransaction reports whether the first statement of an SQL text opens a
// transaction block: BEGIN, or START TRANSACTION. The text may be cut off at its
// end.
func (Scanner) BeginsTransaction(sql []byte) bool {
	word, rest := nextWord(sql)
	switch {
	case equalFold(word, "begin"):
		return true
	case equalFold(word, "start"):
		word, _ = nextWord(rest)
		return equalFold(word, "transaction")
	}
	return false
}

// nextWord returns the first word of an SQL text, and what follows it, past white
// space, comments and empty statements. Both alias sql.
func nextWord(sql []byte) (word, rest []byte) {
	sql = skipBlank(sql)
	n := 0
	for n < len(sql) && isLetter(sql[n]) {
		n++
	}
	return sql[:n], sql[n:]
}

// skipBlank goes past white space, semicolons and comments; comments in C's style
// nest, as in Postgres.
func skipBlank(sql []byte) []byte {
	for len(sql) > 0 {
		switch {
		case isSpace(sql[0]) || sql[0] == ';':
			sql = sql[1:]
		case len(sql) > 1 && sql[0] == '-' && sql[1] == '-':
			sql = skipLine(sql)
		case len(sql) > 1 && sql[0] == '/' && sql[1] == '*':
			sql = skipComment(sql)
		default:
			return sql
		}
	}
	return nil
}

func skipLine(sql []byte) []byte {
	for i, b := range sql {
		if b == '\n' || b == '\r' {
			return sql[i+1:]
		}
	}
	return nil
}

func skipComment(sql []byte) []byte {
	depth := 0
	for i := 0; i+1 < len(sql); i++ {
		switch {
		case sql[i] == '/' && sql[i+1] == '*':
			depth++
			i++
		case sql[i] == '*' && sql[i+1] == '/':
			depth--
			i++
			if depth == 0 {
				return sql[i+1:]
			}
		}
	}
	return nil
}

func isSpace(b byte) bool {
	return b == ' ' || b == '\t' || b == '\n' || b == '\r' || b == '\f' || b == '\v'
}

func isLetter(b byte) bool {
	return b >= 'a' && b <= 'z' || b >= 'A' && b <= 'Z' || b == '_'
}

// equalFold compares a word with one in lower case.
func equalFold(word []byte, lower string) bool {
	if len(word) != len(lower) {
		return false
	}
	for i := range lower {
		if word[i]|0x20 != lower[i] {
			return false
		}
	}
	return true
}

// Deallocates reports whether an SQL text is nothing but a DEALLOCATE, or a DISCARD ALL:
// of all prepared statements, or of the one with a name.
func (Scanner) Deallocates(sql []byte) (name string, all, ok bool) {
	word, rest := nextWord(sql)
	switch {
	case equalFold(word, "discard"):
		word, rest = nextWord(rest)
		return "", true, equalFold(word, "all") && len(skipBlank(rest)) == 0
	case !equalFold(word, "deallocate"):
		return "", false, false
	}
	rest = skipBlank(rest)
	if word, after := nextWord(rest); equalFold(word, "prepare") && len(skipBlank(after)) > 0 {
		rest = skipBlank(after)
	}
	name, quoted, rest, ok := identifier(rest)
	if !ok || len(skipBlank(rest)) > 0 {
		return "", false, false
	}
	if !quoted && name == "all" {
		return "", true, true
	}
	return name, false, true
}

// identifier reads a name at the start of a text: in double quotes as it is, otherwise in
// lower case, as Postgres does.
func identifier(sql []byte) (name string, quoted bool, rest []byte, ok bool) {
	if len(sql) > 0 && sql[0] == '"' {
		var b []byte
		for i := 1; i < len(sql); i++ {
			if sql[i] != '"' {
				b = append(b, sql[i])
				continue
			}
			if i+1 < len(sql) && sql[i+1] == '"' {
				b = append(b, '"')
				i++
				continue
			}
			return clip(b), true, sql[i+1:], len(b) > 0
		}
		return "", true, nil, false
	}
	n := 0
	for n < len(sql) && (isLetter(sql[n]) || sql[n] >= '0' && sql[n] <= '9' && n > 0 || sql[n] == '$' && n > 0 || sql[n] >= 0x80) {
		n++
	}
	b := append([]byte(nil), sql[:n]...)
	for i := range b {
		if b[i] >= 'A' && b[i] <= 'Z' {
			b[i] |= 0x20
		}
	}
	return clip(b), false, sql[n:], n > 0
}

// maxIdentifier is how many bytes of an identifier Postgres regards (NAMEDATALEN - 1).
const maxIdentifier = 63

// clip cuts an identifier off as Postgres does, between two characters.
func clip(b []byte) string {
	if len(b) > maxIdentifier {
		n := maxIdentifier
		for n > 0 && b[n]&0xC0 == 0x80 {
			n--
		}
		b = b[:n]
	}
	return string(b)
}
