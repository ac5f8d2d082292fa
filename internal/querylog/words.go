package querylog

import "bytes"

// This file finds out whether a text says anything of passwords. What a word is depends on
// where quotes begin and on settings of the session, so letters count wherever they
// stand, and also as what they may be written as: %70 in URLs, \160 and \x70 in E'',
// \0070 in U&''.

const (
	// maxBackslashes is how many there may be before the digits of an escape: quotes within
	// quotes double them.
	maxBackslashes = 16

	// maxAuthority is how far into a URL its password is looked for. One that begins before
	// that and does not end counts as one.
	maxAuthority = 256
)

// starts are the bytes that anything begins with which this file looks for: most of a text is
// passed over by them.
var starts = func() (t [256]bool) {
	for _, c := range []byte("pPcChHuU%\\:") {
		t[c] = true
	}
	return t
}()

// speaks reports whether a text has a word for a password, a function that is given one, or a
// URL with one.
func speaks(b []byte) bool {
	for i, c := range b {
		if !starts[c] {
			continue
		}
		if c == ':' {
			if bytes.HasPrefix(b[i:], []byte("://")) && credentials(b[i+3:]) {
				return true
			}
			continue
		}
		if namesPassword(b, i) || function(b, i) || spelled(b, i, "uescape") > 0 {
			return true // UESCAPE: any byte may begin an escape
		}
	}
	return false
}

// names reports whether a name has a word for a password.
func names(b []byte) bool {
	for i, c := range b {
		if starts[c] && namesPassword(b, i) {
			return true
		}
	}
	return false
}

// namesPassword reports whether a word for a password begins at i. "pass" is one if that is a
// word of a name: pass, user_pass and userPass, but not bypass and passenger.
func namesPassword(b []byte, i int) bool {
	if spelled(b, i, "pwd") > 0 || spelled(b, i, "passw") > 0 || spelled(b, i, "passphrase") > 0 {
		return true
	}
	end := spelled(b, i, "pass")
	return end > 0 && begins(b, i) && ends(b, end)
}

// function reports whether the name of a function of pgcrypto with a password or key goes on at i:
// crypt, encrypt, pgp_sym_decrypt_bytea, hmac.
func function(b []byte, i int) bool {
	if end := spelled(b, i, "crypt"); end > 0 && ends(b, end) {
		return true
	}
	end := spelled(b, i, "hmac")
	return end > 0 && begins(b, i) && ends(b, end)
}

// begins reports whether a word begins at i, and ends whether one ends there.
func begins(b []byte, i int) bool {
	return i == 0 || !letter(b[i-1]) || lower(b[i-1]) && !lower(b[i])
}

func ends(b []byte, i int) bool {
	return i == len(b) || !letter(b[i]) || lower(b[i-1]) && !lower(b[i])
}

func letter(c byte) bool { return c|0x20 >= 'a' && c|0x20 <= 'z' }

func lower(c byte) bool { return c >= 'a' && c <= 'z' }

// spelled is the end of the word that begins at i, however its letters are written; 0 if it is
// another. The word is given in lower case.
func spelled(b []byte, i int, word string) int {
	for j := range len(word) {
		if i >= len(b) {
			return 0
		}
		c, n := b[i], 1
		if c == '%' || c == '\\' {
			c, n = escape(b[i:])
		}
		if c|0x20 != word[j] {
			return 0
		}
		i += n
	}
	return i
}

// escape is the letter that an escape at the beginning of b stands for, and how long that
// is; 0 if it is none. None of its forms is the beginning of another one's letter: what is octal begins with
// 1 there, and what has four digits with 00.
func escape(b []byte) (c byte, n int) {
	if b[0] == '%' {
		return digits(b, 1, 2, 4)
	}
	n = 1
	for n < len(b) && n < maxBackslashes && b[n] == '\\' {
		n++
	}
	if n == len(b) {
		return 0, 0
	}
	switch b[n] {
	case 'x':
		return digits(b, n+1, 2, 4)
	case 'u':
		return digits(b, n+1, 4, 4)
	case 'U':
		return digits(b, n+1, 8, 4)
	case '+':
		return digits(b, n+1, 6, 4)
	case '1':
		return digits(b, n, 3, 3)
	}
	return digits(b, n, 4, 4)
}

// digits is the character that the digits at i are, of so many bits each, and where they end; 0 if
// there are not as many or it is not ASCII.
func digits(b []byte, i, many, bits int) (c byte, end int) {
	v := 0
	if len(b)-i < many {
		return 0, 0
	}
	for _, c := range b[i : i+many] {
		d := bytes.IndexByte([]byte("0123456789abcdef"), c)
		if letter(c) {
			d = bytes.IndexByte([]byte("0123456789abcdef"), c|0x20)
		}
		if d < 0 || d >= 1<<bits {
			return 0, 0
		}
		if v = v<<bits | d; v > 0x7f {
			return 0, 0
		}
	}
	return byte(v), i + many
}

// credentials reports whether there is a password in a URL, or may be: where a literal ends
// before it is clear, what it is joined with can be one. b is what follows "://".
func credentials(b []byte) bool {
	colon := -1
	for i := 0; i < len(b); i++ {
		if i == maxAuthority {
			return colon >= 0
		}
		switch c := b[i]; {
		case c == '\'' || c == '"':
			if i > 0 && i+1 < len(b) && b[i+1] == c {
				i++
				continue
			}
			return i == 0 || colon >= 0 && !port(b[colon+1:i], b[i+1:]) || colon < 0 && joined(b[i+1:])
		case colon >= 0:
			if c == '@' {
				return true
			}
		case c == ':':
			colon = i
		case c == '/' || c == '?' || c == '#' || c == '@' || c <= ' ':
			return false
		}
	}
	return false
}

// port reports whether what follows a colon in a literal is a port and no password.
func port(b, behind []byte) bool {
	n := 0
	for n < len(b) && b[n] >= '0' && b[n] <= '9' {
		n++
	}
	if n == 0 {
		return false
	}
	if n == len(b) {
		return !joined(behind)
	}
	return b[n] == '/' || b[n] == '?' || b[n] == '#'
}

// joined reports whether a literal that ended in front of b is joined with something.
func joined(b []byte) bool {
	b = b[:min(len(b), maxAuthority)]
	return bytes.HasPrefix(b[space(b, 0):], []byte("||"))
}
