package admin

import "strings"

// word is a word of a command.
type word struct {
	text   string
	quoted bool
}

// split takes a text apart: statements at semicolons, words at white space, commas and
// equals signs. What stands in quotes is one word, with the quotes taken off; comments
// are none. Empty statements are left out.
func split(text string) (statements [][]word) {
	var words []word
	for i := 0; i < len(text); {
		switch rest := text[i:]; {
		case rest[0] == ';':
			if words != nil {
				statements, words = append(statements, words), nil
			}
			i++
		case strings.HasPrefix(rest, "--"):
			i += until(rest, "\n")
		case strings.HasPrefix(rest, "/*"):
			i += until(rest, "*/")
		case rest[0] == '\'' || rest[0] == '"':
			w, n := quoted(rest)
			words = append(words, word{w, true})
			i += n
		case isSpace(rest[0]) || rest[0] == ',' || rest[0] == '=':
			i++
		default:
			n := strings.IndexAny(rest, " \t\r\n\v\f,=;'\"")
			if n < 0 {
				n = len(rest)
			}
			words = append(words, word{text: rest[:n]})
			i += n
		}
	}
	if words != nil {
		statements = append(statements, words)
	}
	return statements
}

// until is the length of s up to and including its first end.
func until(s, end string) int {
	if n := strings.Index(s, end); n >= 0 {
		return n + len(end)
	}
	return len(s)
}

// quoted reads what stands in quotes at the start of s, in which a doubled quote stands
// for one; n is its length. A missing quote at the end is as good as one.
func quoted(s string) (text string, n int) {
	var b strings.Builder
	for i := 1; i < len(s); i++ {
		switch {
		case s[i] != s[0]:
			b.WriteByte(s[i])
		case i+1 < len(s) && s[i+1] == s[0]:
			b.WriteByte(s[i])
			i++
		default:
			return b.String(), i + 1
		}
	}
	return b.String(), len(s)
}

func isSpace(c byte) bool { return strings.IndexByte(" \t\r\n\v\f", c) >= 0 }

// texts are the words without what is known of their quotes.
func texts(words []word) []string {
	var out []string
	for _, w := range words {
		out = append(out, w.text)
	}
	return out
}
