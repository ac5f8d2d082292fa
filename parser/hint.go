package parser

import "bytes"

// role is what a comment asks for.
type role uint8

const (
	noRole role = iota
	primaryRole
	replicaRole
)

// hintName is the word in a comment that a role follows.
var hintName = []byte("pgdog_role")

// comment looks for a hint in the comment that has just been read.
func (l *lexer) comment(start int) {
	_, rest, found := bytes.Cut(l.sql[start:l.at], hintName)
	if !found {
		return
	}
	rest = bytes.TrimLeft(rest, " \t\r\n")
	if len(rest) == 0 || rest[0] != ':' && rest[0] != '=' {
		return
	}
	word, _ := nextWord(rest[1:])
	switch {
	case equalFold(word, "primary"):
		l.hint = primaryRole
	case equalFold(word, "replica"):
		l.hint = replicaRole
	}
}
