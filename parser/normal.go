package parser

// normal appends a token to the text that the parser is given, which is also the key under
// which the verdict is kept: constants are replaced by others of their kind, so that texts
// that differ in nothing else have the same key, and a long constant costs nothing.
func (s *scanner) normal(t token) {
	raw := s.sql[s.start:s.end]
	if s.keep {
		if s.blank && s.last != tokenEnd {
			s.dst = append(s.dst, s.between(t))
		}
		s.dst = append(s.dst, raw...)
		return
	}
	if s.blank && s.last != tokenEnd {
		if t == tokenString && s.last == tokenString {
			return // two of them with a line break between are one
		}
		s.dst = append(s.dst, ' ')
	}
	switch t {
	case tokenNumber:
		s.dst = append(s.dst, '1')
	case tokenString:
		switch raw[0] {
		case '\'', '$':
		default:
			s.dst = append(s.dst, raw[0])
		}
		s.dst = append(s.dst, '\'', '\'')
	default:
		s.dst = append(s.dst, raw...)
	}
}

// between is what stands for the blanks in front of a token: two strings are one only if
// there is a line break between them.
func (s *scanner) between(t token) byte {
	if t == tokenString && s.last == tokenString {
		return '\n'
	}
	return ' '
}
