package parser

// maxParens is how deeply parentheses may be nested for a text to be parsed. The parser of
// Postgres itself gives up at a few thousand.
const maxParens = 64

// tooDeep is a depth that no limit allows.
const tooDeep = 1 << 30

// nesting finds how deep the tree can be that is made of a text. Postgres makes a level of
// each operator of a chain, each cast, each join, and recurses over them without a limit of
// its own when it writes the tree down. A level takes at least one token, so the tokens
// between two commas, and between two parentheses, are at least as many as the levels there.
// Set operations are what makes a level of what has commas.
type nesting struct {
	at     int // how many parentheses are open
	levels [maxParens]segment
	deep   bool  // there were more
	worst  int32 // of the statements that have ended
}

// segment is what has been seen within one pair of parentheses.
type segment struct {
	tokens int32 // since the last comma
	inner  int32 // deepest pair of parentheses since then
	most   int32 // deepest of what is before the last comma
	sets   int32 // words that may be those of set operations
}

func (n *nesting) add() { n.levels[n.at].tokens++ }

func (n *nesting) set() { n.levels[n.at].sets++ }

func (n *nesting) comma() {
	s := &n.levels[n.at]
	s.most = max(s.most, s.tokens+s.inner)
	s.tokens, s.inner = 0, 0
}

func (n *nesting) open() {
	n.levels[n.at].tokens++
	if n.at+1 == maxParens {
		n.deep = true
		return
	}
	n.at++
	n.levels[n.at] = segment{}
}

func (n *nesting) close() {
	if n.deep || n.at == 0 {
		return
	}
	depth := n.levels[n.at].depth()
	n.at--
	s := &n.levels[n.at]
	s.inner = max(s.inner, depth)
}

func (s *segment) depth() int32 { return max(s.most, s.tokens+s.inner) + s.sets }

// statement is called at a semicolon.
func (n *nesting) statement() {
	if n.at == 0 {
		n.worst = max(n.worst, n.levels[0].depth())
		n.levels[0] = segment{}
		return
	}
	n.comma() // the body of a rule
}

// end returns the depth of the whole text.
func (n *nesting) end() int {
	if n.deep {
		return tooDeep
	}
	for n.at > 0 {
		n.close()
	}
	return int(max(n.worst, n.levels[0].depth()))
}
