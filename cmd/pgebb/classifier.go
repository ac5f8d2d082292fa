package main

import (
	"github.com/pgebb/pgebb/frontend"
	"github.com/pgebb/pgebb/parser"
)

// classifier tells the frontend what the parser makes of a text.
type classifier struct{ parser.Scanner }

func (c classifier) Prepared(sql []byte) (frontend.Prepared, bool) {
	p, ok := c.Scanner.Prepared(sql)
	return frontend.Prepared(p), ok
}
