package querylog

import (
	"bytes"
	"strconv"
)

// A text that says anything of passwords (words.go) is written without any constant, whichever
// of them is the password: it can be behind the word or in front of it, be put together
// of several, or be in a body of code that is itself a constant. Names stay, and
// so do numbers and the order of it all. What is not known whole is written so as well,
// because what is missing may say something of passwords.
//
// Where a constant ends depends on settings of the session, and a client that has forgotten to double
// a quote has its constants the wrong way round. So where there is any doubt nothing is
// written from the first constant on: too much may be missing in the log, and
// never too little.

const (
	// mask is what stands there instead.
	mask = "'***'"

	// maskedComment is what stands instead of a comment.
	maskedComment = "/***/"
)

// appendMasked appends a text in quotes, without its constants if there may be a password in
// it. cut says that it is not the whole text.
func appendMasked(b, text []byte, cut bool) []byte {
	if cut || speaks(text) {
		text = masked(text, cut)
	}
	return strconv.AppendQuote(b, string(text))
}

// masked is a text without its constants.
func masked(text []byte, cut bool) []byte {
	m := masker{in: text, cut: cut, first: -1}
	for m.i < len(m.in) && !m.doubtful {
		m.token()
	}
	if !m.doubtful {
		return m.out
	}
	if m.first < 0 {
		m.first = len(m.out)
	}
	return append(m.out[:m.first], mask...)
}

// masker masks one text.
type masker struct {
	in       []byte
	cut      bool // in goes on
	out      []byte
	i        int  // in[:i] is dealt with
	first    int  // index in out of the first thing that was hidden; -1 if nothing was
	doubtful bool // what is a constant in the rest is not sure, nor was it before

	last   token // before i, without comments
	role   bool  // in a command that makes or alters a role
	values bool  // behind VALUES
	depth  int   // of parentheses, behind VALUES
}

// token is what is to be known of the token before.
type token struct {
	named    bool // a name with a word for a password
	password bool // PASSWORD, where a password must follow
	assigned bool // = or TO behind such a name
	operator bool
	verb     bool // CREATE or ALTER
}

// token goes past one token.
func (m *masker) token() {
	b := m.in[m.i:]
	switch c := b[0]; {
	case blank(c):
		m.show(1)
	case bytes.HasPrefix(b, []byte("--")), bytes.HasPrefix(b, []byte("/*")):
		m.comment()
	case c == '\'':
		m.literal(m.i, false)
	case c == '"':
		m.quoted(m.i)
	case c == '$':
		m.dollar()
	case bytes.HasPrefix(b, []byte("://")): // a URL that is in no quotes
		m.doubtful = true
	case inName(c):
		m.word()
	default:
		m.symbol()
	}
}

// show writes the next n bytes.
func (m *masker) show(n int) {
	m.out = append(m.out, m.in[m.i:m.i+n]...)
	m.i += n
}

// hide writes something else instead of what there is up to an index.
func (m *masker) hide(end int, instead string) {
	if m.first < 0 {
		m.first = len(m.out)
	}
	m.out = append(m.out, instead...)
	m.i = end
}

// hideOpen hides the rest, which is in something that does not end. In a whole text that shows
// that there is a quote too many somewhere.
func (m *masker) hideOpen() {
	m.doubtful = !m.cut
	m.hide(len(m.in), mask)
}

// constant hides one that ends at an index. What it touches shows whether it is one.
func (m *masker) constant(end int) {
	m.hide(end, mask)
	m.last = token{}
	m.doubtful = !mayFollow(m.in[end:])
}

// comment hides one: there can be anything in it.
func (m *masker) comment() {
	end := len(m.in)
	if m.in[m.i] == '-' {
		if n := bytes.IndexAny(m.in[m.i:], "\r\n"); n >= 0 {
			end = m.i + n
		}
	} else if end = comment(m.in, m.i); end < 0 {
		m.hideOpen()
		return
	}
	m.hide(end, maskedComment)
}

// literal hides one that has its quote at an index: there may be a prefix in front of it.
func (m *masker) literal(quote int, escapes bool) {
	if m.touched() {
		m.doubtful = true
		return
	}
	end, sure := literal(m.in, quote, escapes)
	switch {
	case !sure:
		m.doubtful = true
	case end < 0:
		m.hideOpen()
	default:
		m.constant(end)
	}
}

// touched reports whether what is next touches a name or number.
func (m *masker) touched() bool {
	return m.i > 0 && (inName(m.in[m.i-1]) || m.in[m.i-1] == '"')
}

// dollar deals with a parameter, or with a constant in dollar quotes.
func (m *masker) dollar() {
	n := 1
	for m.i+n < len(m.in) && inName(m.in[m.i+n]) {
		n++
	}
	tag := m.in[m.i : m.i+n]
	switch {
	case n > 1 && digit(tag[1]):
		n = 1
		for n < len(tag) && digit(tag[n]) {
			n++
		}
		m.show(n)
		m.last = token{}
	case m.i+n == len(m.in): // it is not known what this would have been
		m.hideOpen()
	case m.in[m.i+n] != '$':
		m.doubtful = true // no SQL
	default:
		tag = m.in[m.i : m.i+n+1]
		end := bytes.Index(m.in[m.i+len(tag):], tag)
		if end < 0 {
			m.hideOpen()
			return
		}
		m.constant(m.i + len(tag) + end + len(tag))
	}
}

// word deals with a keyword, name or number, and with the constant whose prefix it is.
func (m *masker) word() {
	end, number := m.i+1, digit(m.in[m.i])
	for end < len(m.in) && (inName(m.in[end]) || m.in[end] == '$' && !number) {
		end++
	}
	w, next := m.in[m.i:end], m.in[end:]
	switch {
	case bytes.HasPrefix(next, []byte{'\''}) && len(w) == 1 && bytes.IndexByte([]byte("enbx"), w[0]|0x20) >= 0:
		m.literal(end, w[0]|0x20 == 'e')
		return
	case bytes.HasPrefix(next, []byte("&'")) && len(w) == 1 && w[0]|0x20 == 'u':
		m.literal(end+1, false)
		return
	case bytes.HasPrefix(next, []byte(`&"`)) && len(w) == 1 && w[0]|0x20 == 'u':
		m.quoted(end + 1)
		return
	case m.last.password && !is(w, "null"):
		m.doubtful = true // it has lost its quotes
		return
	case m.last.assigned && !is(w, "null", "default") && (len(next) == 0 || next[0] != '(' && next[0] != '.'):
		m.bare()
		return
	}
	m.show(len(w))
	m.doubtful = len(next) > 0 && (next[0] == '\'' || next[0] == '"')
	if m.last.verb && is(w, "role", "user", "group") {
		m.role = true
	}
	if m.depth == 0 {
		m.values = is(w, "values")
	}
	m.last = token{
		named: names(w), password: m.role && is(w, "password"), assigned: m.last.named && is(w, "to"), verb: is(w, "create", "alter"),
	}
}

// bare hides a value that is in no quotes.
func (m *masker) bare() {
	end := len(m.in)
	if n := bytes.IndexAny(m.in[m.i:], " \t\r\n\f\v;,()'\""); n >= 0 {
		end = m.i + n
	}
	m.hide(end, mask)
	m.last = token{}
}

// quoted deals with a name that has its quote at an index. It is hidden where it may be a value, as
// with who is used to another database, and where it is none that anybody would give.
func (m *masker) quoted(quote int) {
	end := quotedName(m.in, quote)
	if end < 0 {
		m.hideOpen()
		return
	}
	name := m.in[quote+1 : end-1]
	part := m.i > 0 && m.in[m.i-1] == '.' || end < len(m.in) && m.in[end] == '.'
	l := m.last
	m.last = token{named: names(name)}
	if !part && (l.named || l.password || l.assigned || l.operator || m.values && m.depth > 0) || bytes.ContainsAny(name, `=:@/'$\`) {
		m.hide(end, mask)
	} else {
		m.show(end - m.i)
	}
	m.doubtful = end < len(m.in) && inName(m.in[end])
}

// symbol deals with an operator, a parenthesis and the like.
func (m *masker) symbol() {
	l := m.last
	m.last = token{}
	switch c := m.in[m.i]; c {
	case ';':
		m.role, m.values, m.depth = false, false, 0
		m.show(1)
		return
	case '(', ')':
		if m.values && c == '(' {
			m.depth++
		} else if m.depth > 0 && c == ')' {
			m.depth--
		}
		m.show(1)
		return
	case ',', '[', ']':
		m.show(1)
		return
	}
	if l.assigned {
		m.bare()
		return
	}
	n := operator(m.in[m.i:])
	if n == 0 {
		m.show(1)
		m.doubtful = l.password // it has no quotes
		return
	}
	op := m.in[m.i : m.i+n]
	m.show(n)
	cast := string(op) == "::"
	m.last = token{operator: !cast, assigned: l.named && (bytes.IndexByte(op, '=') >= 0 || string(op) == ":")}
	m.doubtful = l.password && !m.last.assigned
}
