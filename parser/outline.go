package parser

// outline makes of a text what scan makes of it for the parser, several times faster, because
// it finds out nothing else. It gives up on all that is not plain: comments, constants
// with a letter or a dollar sign in front, backslashes, what is cut off. dst has room for
// any text that is not longer.
func outline(sql []byte, dst *[memoText]byte) (n int, plain bool) {
	if len(sql) > len(dst) {
		return 0, false
	}
	from := 0        // what is before it has been dealt with
	afterString := 0 // where the last string has ended, with the blanks behind it
	for i := 0; i < len(sql); {
		start, put := i, ""
		switch c := sql[i]; class[c] {
		case classLetter:
			i = wordEnd(sql, i)
			if i == start+1 && i < len(sql) && (sql[i] == '\'' || sql[i] == '&') {
				return 0, false
			}
			continue
		case classOperator:
			if i++; i < len(sql) && (c == '-' && sql[i] == '-' || c == '/' && sql[i] == '*') {
				return 0, false
			}
			continue
		case classSpace:
			for i++; i < len(sql) && class[sql[i]] == classSpace; i++ {
			}
			if start == afterString {
				afterString = i
			}
			switch {
			case start == 0 || i == len(sql):
			case i == start+1 && c == ' ':
				continue
			default:
				put = " "
			}
		case classDigit:
			if i = numberEnd(sql, i); i == 0 {
				return 0, false
			}
			put = "1"
		default:
			switch c {
			case '\'':
				if i = stringEnd(sql, i); i == 0 || start > 0 && start == afterString {
					return 0, false
				}
				afterString, put = i, "''"
			case '"':
				if i = nameEnd(sql, i); i == 0 {
					return 0, false
				}
				continue
			case '.', '$':
				i++
				if digit := i < len(sql) && class[sql[i]] == classDigit; digit != (c == '$') {
					return 0, false
				}
				for c == '$' && i < len(sql) && class[sql[i]] == classDigit {
					i++
				}
				continue
			default:
				i++
				continue
			}
		}
		n += copy(dst[n:], sql[from:start])
		n += copy(dst[n:], put)
		from = i
	}
	return n + copy(dst[n:], sql[from:]), true
}

// wordEnd is where a word ends.
func wordEnd(sql []byte, i int) int {
	for i++; i < len(sql) && inWord[sql[i]]; i++ {
	}
	return i
}

// inWord are the bytes that words go on with.
var inWord = func() (is [256]bool) {
	for b := range is {
		is[b] = class[b] == classLetter || class[b] == classDigit || b == '$'
	}
	return is
}()

// numberEnd is where a decimal number ends; 0 if it is none, or not clearly one.
func numberEnd(sql []byte, i int) int {
	dots := 0
	for ; i < len(sql) && (class[sql[i]] == classDigit || sql[i] == '.'); i++ {
		if sql[i] == '.' {
			dots++
		}
	}
	if dots > 1 || i < len(sql) && class[sql[i]] == classLetter {
		return 0
	}
	return i
}

// stringEnd is where a string ends that begins at i; 0 if backslashes could matter, or it is
// cut off.
func stringEnd(sql []byte, i int) int {
	for i++; i < len(sql); i++ {
		switch {
		case sql[i] == '\\':
			return 0
		case sql[i] != '\'':
		case i+1 < len(sql) && sql[i+1] == '\'':
			i++
		default:
			return i + 1
		}
	}
	return 0
}

// nameEnd is where a name in quotes ends that begins at i; 0 if it is cut off.
func nameEnd(sql []byte, i int) int {
	for i++; i < len(sql); i++ {
		switch {
		case sql[i] != '"':
		case i+1 < len(sql) && sql[i+1] == '"':
			i++
		default:
			return i + 1
		}
	}
	return 0
}
