package parser

import (
	"bytes"

	"github.com/pgebb/pgebb/internal/verdict"
)

// facts are what a scan finds out about a text.
type facts struct {
	flags verdict.Flags // on the safe side
	// exactWrite and exactState say that what the flags say about reading and writing, and
	// about the session, needs no parser.
	exactWrite, exactState bool

	doubtful bool // it can be read in two ways
	verbatim bool // what it does depends on its constants, or those cannot be left out
	tokens   int  // how many there are
	depth    int  // how deep the tree can be that the parser makes of it, at most
}

// scanner is a scan under way.
type scanner struct {
	lexer
	facts
	dst  []byte // the text for the parser, see normal
	keep bool   // constants

	opener     opener
	expect     bool // a statement begins here
	statements int
	afterRead  bool // the word before was READ
	rollback   bool // the statement is a ROLLBACK
	last       token
	nest       nesting
	fold       [longestWord]byte
}

// scan looks through a text, and appends to dst what the parser is to be given in place of
// it: the same text without comments and, unless constants are to be kept, with other
// constants. Of a text that is too long to be parsed only the beginning is appended.
func scan(sql, dst []byte, keep bool) (facts, []byte, role) {
	s := scanner{lexer: lexer{sql: sql}, dst: dst, expect: true, keep: keep}
	s.exactWrite, s.exactState = true, true
	for {
		t := s.next()
		if t == tokenEnd {
			break
		}
		s.tokens++
		if len(s.dst) <= maxText {
			s.normal(t)
		}
		switch t {
		case tokenWord, tokenQuoted:
			s.identifier(t == tokenQuoted)
		case tokenString:
			s.constant()
			s.nest.add()
		case tokenOther:
			s.other(sql[s.start])
		case tokenOperator:
			// Postgres makes an operator of each character, if they are the right ones.
			for range s.end - s.start {
				s.nest.add()
			}
			s.tokens += s.end - s.start - 1
			s.begun()
		default:
			s.nest.add()
			s.begun()
		}
		s.last = t
	}
	return s.facts.finished(&s), s.dst, s.hint
}

// finished is called at the end of the text.
func (f facts) finished(s *scanner) facts {
	f.depth = s.nest.end()
	if s.statements > 1 {
		f.flags |= verdict.Several
	}
	if s.unicode {
		f.verbatim, f.exactWrite, f.exactState = true, false, false
		f.flags |= verdict.Write // what such a name is is not looked up
	}
	if s.lexer.doubtful {
		f.doubtful = true
		f.flags |= verdict.Any
		f.exactWrite, f.exactState, f.verbatim = false, false, true
	}
	if f.flags&verdict.Session != 0 {
		f.verbatim = true
	}
	return f
}

// begun notes that a statement has begun, with something that is no word.
func (s *scanner) begun() {
	if s.expect {
		s.expect = false
		s.statements++
		s.opener = otherOpener
		s.flags |= verdict.Write
	}
}

// other deals with a character that stands for itself.
func (s *scanner) other(b byte) {
	switch b {
	case ';':
		s.expect = true
		s.nest.statement()
	case ',':
		s.nest.comma()
	case '(', '[':
		s.nest.open()
		// A statement may begin with parentheses, and goes on behind them.
	case ')', ']':
		s.nest.close()
	default:
		s.nest.add()
		s.begun()
	}
}

// identifier deals with a word, or a name in quotes.
func (s *scanner) identifier(quoted bool) {
	s.nest.add()
	raw := s.sql[s.start:s.end]
	if quoted {
		raw = bytes.Trim(raw, `"`)
	}
	text, w := lookup(raw, quoted, &s.fold)
	if w.set {
		s.nest.set()
	}
	if !s.expect {
		s.inside(text, w)
		return
	}
	s.expect = false
	s.statements++
	if quoted {
		w = otherWord
	}
	s.opener = w.opener
	s.flags |= w.opens
	s.rollback = w.opener == plainOpener && (string(text) == "rollback" || string(text) == "abort")
	switch w.opener {
	case parsedOpener:
		s.verbatim = true
		s.exactState, s.exactWrite = false, false
	case bodyOpener:
		s.verbatim = true
	}
}

// inside deals with a word that is not the first.
func (s *scanner) inside(text []byte, w word) {
	if s.opener == plainOpener {
		switch {
		case s.flags&verdict.Begin != 0:
			s.mode(text)
		case s.rollback && string(text) == "to":
			s.flags |= verdict.Savepoint
			if s.statements == 1 {
				// Otherwise there may be another statement that has it.
				s.flags &^= verdict.End
			}
		}
		return
	}
	sign := w.sign
	if sign&verdict.Session != 0 {
		s.exactState = false
	}
	if s.opener != readOpener {
		sign &^= verdict.Locking
	} else if sign&verdict.Write != 0 {
		s.exactWrite = false
	}
	s.flags |= sign
}

// mode deals with the words behind a BEGIN.
func (s *scanner) mode(text []byte) {
	switch {
	case s.afterRead && string(text) == "only":
		s.flags |= verdict.ReadOnly
	case s.afterRead && string(text) == "write":
		s.flags |= verdict.ReadWrite
	}
	s.afterRead = string(text) == "read"
}

// constant looks through the body of a DO: whatever it may do is taken for done.
func (s *scanner) constant() {
	s.begun()
	if s.opener != bodyOpener {
		return
	}
	s.verbatim = true
	body := s.sql[s.start:s.end]
	for i := 0; i < len(body); {
		if class[body[i]] != classLetter {
			i++
			continue
		}
		start := i
		for i < len(body) && (class[body[i]] == classLetter || class[body[i]] == classDigit || body[i] == '$') {
			i++
		}
		text, w := lookup(body[start:i], false, &s.fold)
		s.flags |= bodySign(text, w)
	}
}

// bodySign is what a word in the body of a DO may mean.
func bodySign(text []byte, w word) verdict.Flags {
	switch string(text) {
	case "set", "reset":
		return verdict.Settings | verdict.Unnamed | verdict.Authorization
	case "execute":
		return verdict.Any // a text that is put together
	case "discard", "deallocate":
		return verdict.Discard
	case "listen":
		return verdict.Listen | verdict.Unknown // the word may be only a word
	case "prepare":
		return verdict.Prepare
	}
	return w.sign
}
