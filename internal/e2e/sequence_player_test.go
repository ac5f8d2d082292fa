package e2e

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"

	"github.com/pgebb/pgebb/frontend/frontendtest"
	"github.com/pgebb/pgebb/internal/wire"
)

// This file plays a sequence: it says what a client says, and reads what there is to read
// before it goes on.

// round is what a client says before it reads.
type round struct {
	messages [][]string // as words of a transcript
	blind    bool       // nothing is read behind it: not all that it asks for is answered yet
}

// life is what one client does in its life.
type life []round

// Script is the program as a transcript, with what it was told as far as that goes.
func (p life) Script(client string, told []string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "! %s connect\n", client)
	for _, r := range p {
		for _, words := range r.messages {
			fmt.Fprintf(&b, "> %s %s", client, words[0])
			for _, w := range words[1:] {
				fmt.Fprintf(&b, " %q", w)
			}
			b.WriteString("\n")
		}
		if !r.blind {
			fmt.Fprintf(&b, "= %s …\n", client)
		}
	}
	for _, t := range told {
		fmt.Fprintf(&b, "< %s\n", t)
	}
	return b.String()
}

// player is a client that plays a program. What it waits for it knows from the protocol: ops
// are the messages that are to be answered, one letter each.
type player struct {
	c        *frontendtest.Client
	r        *rand.Rand // how it cuts what it says into pieces
	ops      []byte
	skipping bool // all is ignored up to a Sync
	copying  bool // COPY data is read
	told     []string
}

// opOf is the letter of a message that has an answer, or that ends a COPY.
func opOf(message string) byte {
	switch message {
	case "Parse", "Bind", "Execute", "Sync", "Query":
		return message[0]
	case "DescribeStatement", "DescribePortal":
		return 'D'
	case "CloseStatement", "ClosePortal":
		return 'C'
	case "CopyDone", "CopyFail":
		return 'c'
	}
	return 0
}

// play plays a program to its end.
func (p *player) play(prog life) error {
	for i, r := range prog {
		var b []byte
		for _, words := range r.messages {
			m, err := frontendtest.Encode(words)
			if err != nil {
				return err
			}
			b = append(b, m...)
			p.push(opOf(words[0]))
		}
		if err := p.say(b); err != nil {
			return fmt.Errorf("round %d: %w", i, err)
		}
		if r.blind {
			continue
		}
		if err := p.read(); err != nil {
			return fmt.Errorf("round %d, still to be answered are %q: %w", i, p.ops, err)
		}
	}
	return nil
}

// say sends bytes, in one piece or cut at random.
func (p *player) say(b []byte) error {
	for len(b) > 1 && p.r.IntN(3) == 0 {
		n := 1 + p.r.IntN(len(b)-1)
		if err := p.c.Send(b[:n]); err != nil {
			return err
		}
		b = b[n:]
		for range p.r.IntN(4) * 20 {
			runtime.Gosched() // so that the pieces are not always read as one
		}
	}
	return p.c.Send(b)
}

func (p *player) push(op byte) {
	switch {
	case op == 0, p.skipping && op != 'S':
		return
	case op == 'c' && p.copying:
		p.ops = append(p.ops[:1], op) // Syncs in front of it are read and ignored
		return
	}
	p.skipping = false
	p.ops = append(p.ops, op)
	p.ignored()
}

// ignored drops ends of a COPY where there is none.
func (p *player) ignored() {
	for len(p.ops) > 0 && p.ops[0] == 'c' {
		p.ops = p.ops[1:]
	}
}

// read reads until everything is answered, or data for a COPY is wanted.
func (p *player) read() error {
	for len(p.ops) > 0 && (!p.copying || len(p.ops) > 1 && p.ops[1] == 'c') {
		m, err := p.c.Receive()
		if err != nil {
			return err
		}
		p.told = append(p.told, shown(m))
		p.answer(m.Type)
	}
	return nil
}

// ourOwn marks an error that pgebb has made, which unlike those of Postgres has no routine.
const ourOwn = " (pgebb's own)"

func shown(m frontendtest.Message) string {
	if m.Type == wire.ErrorResponse && len(wire.ErrorField(m.Body, 'R')) == 0 {
		return m.Show() + ourOwn
	}
	return m.Show()
}

// alike reports whether two answers are the same for a client.
func alike(a, b string) bool { return strings.TrimSuffix(a, ourOwn) == strings.TrimSuffix(b, ourOwn) }

func (p *player) answer(typ byte) {
	if len(p.ops) == 0 {
		return
	}
	first := p.ops[0]
	switch typ {
	case wire.ParseComplete, wire.BindComplete, wire.CloseComplete:
		p.ops = p.ops[1:]
	case wire.RowDescription, wire.NoData:
		if first == 'D' {
			p.ops = p.ops[1:]
		}
	case wire.CommandComplete, wire.EmptyQueryResponse, wire.PortalSuspended:
		if p.copying {
			p.endCopy()
		}
		if first == 'E' {
			p.ops = p.ops[1:]
		}
	case wire.CopyInResponse:
		p.copying = true
		if end := strings.IndexByte(string(p.ops), 'c'); end > 0 {
			p.ops = append([]byte{first}, p.ops[end:]...)
		}
	case wire.ReadyForQuery:
		p.ops = p.ops[1:]
	case wire.ErrorResponse:
		if p.copying {
			p.endCopy()
		}
		if first == 'Q' || first == 'S' {
			return
		}
		end := strings.IndexByte(string(p.ops), 'S')
		p.skipping = end < 0
		if end < 0 {
			end = len(p.ops)
		}
		p.ops = p.ops[end:]
	}
	p.ignored()
}

// endCopy ends a COPY, whose end may have been sent or not.
func (p *player) endCopy() {
	p.copying = false
	if len(p.ops) > 1 && p.ops[1] == 'c' {
		p.ops = append(p.ops[:1], p.ops[2:]...)
	}
}
