package frontendtest

import (
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/pgebb/pgebb/internal/wire"
)

// Script is a wire transcript. Its lines:
//
//	# text                what it is about
//	modes: transaction …  pooler modes, or ways to test one, that it holds in; without it all
//	pool: N               size of the pool that it needs; without it 1
//	splits: yes           it is short enough to be run with every way to cut its input in two
//	setup: SQL            run before it, directly, by the owner of the database
//	! A connect k=v …     a client connects, with run-time parameters
//	! A startup V k=v …   the same with a protocol version, in hex, and shows the greeting
//	! A close             it disconnects without a word
//	! A reset             the same with a reset
//	! A halfclose         it ends its side
//	> A Message args …    it says something; what follows without a = is sent in one piece
//	= A types             it has sent that; and waits for messages up to one of the last
//	                      type, in that order: "Z", "ZZ", "1G"; "EOF" for the end
//	< …                   what it is told, as recorded
//
// Arguments are words or Go strings; {rep:x:1000} in one stands for x a thousand times.
type Script struct {
	Name  string
	Modes []string
	Pool  int
	Split bool
	Setup []string
	steps []step
	lines []string // of the file, without what is recorded
}

// step is one line that does something.
type step struct {
	kind   byte // ! > =
	client string
	words  []string
	index  int // into lines
}

// ReadScript reads a transcript.
func ReadScript(path string) (*Script, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("reading a transcript: %w", err)
	}
	s := &Script{Name: path, Pool: 1}
	for i, line := range strings.Split(strings.TrimRight(string(b), "\n"), "\n") {
		if strings.HasPrefix(line, "< ") {
			continue
		}
		s.lines = append(s.lines, line)
		if err := s.line(line); err != nil {
			return nil, fmt.Errorf("%s:%d: %w", path, i+1, err)
		}
	}
	return s, nil
}

func (s *Script) line(line string) error {
	key, value, _ := strings.Cut(line, ": ")
	switch {
	case line == "" || line[0] == '#':
		return nil
	case key == "modes":
		s.Modes = strings.Fields(value)
		return nil
	case key == "pool":
		var err error
		s.Pool, err = strconv.Atoi(value)
		return err
	case key == "splits":
		s.Split = value == "yes"
		return nil
	case key == "setup":
		s.Setup = append(s.Setup, value)
		return nil
	}
	words, err := splitWords(line)
	if err != nil {
		return err
	}
	if len(words) < 3 || !strings.Contains("!>=", words[0]) {
		return fmt.Errorf("%q is no step", line)
	}
	s.steps = append(s.steps, step{line[0], words[1], words[2:], len(s.lines) - 1})
	return nil
}

// splitWords splits at blanks, outside of Go strings, and unquotes those.
func splitWords(line string) ([]string, error) {
	var words []string
	for line = strings.TrimSpace(line); line != ""; line = strings.TrimSpace(line) {
		if line[0] != '"' {
			word, rest, _ := strings.Cut(line, " ")
			words, line = append(words, expand(word)), rest
			continue
		}
		q, err := strconv.QuotedPrefix(line)
		if err != nil {
			return nil, fmt.Errorf("%q: %w", line, err)
		}
		word, err := strconv.Unquote(q)
		if err != nil {
			return nil, fmt.Errorf("%q: %w", q, err)
		}
		words, line = append(words, expand(word)), line[len(q):]
	}
	return words, nil
}

func expand(word string) string {
	before, rest, ok := strings.Cut(word, "{rep:")
	if !ok {
		return word
	}
	body, after, _ := strings.Cut(rest, "}")
	text, count, _ := strings.Cut(body, ":")
	n, err := strconv.Atoi(count)
	if err != nil {
		return word
	}
	return before + strings.Repeat(text, n) + expand(after)
}

// In reports whether the transcript holds in a pooler mode.
func (s *Script) In(mode string) bool {
	if s.Modes == nil {
		return true
	}
	for _, m := range s.Modes {
		if m == mode {
			return true
		}
	}
	return false
}

// Record is the transcript with what was told.
func (s *Script) Record(told map[int][]string) string {
	var b strings.Builder
	for i, line := range s.lines {
		b.WriteString(line + "\n")
		for _, t := range told[i] {
			b.WriteString("< " + t + "\n")
		}
	}
	return b.String()
}

// Run plays the transcript. prepare, which may be nil, is called for each client
// before it says anything. What is returned is what the clients were told, by the
// line of the transcript behind which it belongs.
func (s *Script) Run(l Login, prepare func(*Client)) (told map[int][]string, sent int, err error) {
	r := run{login: l, prepare: prepare, clients: map[string]*Client{}, told: map[int][]string{}, say: map[string][]byte{}}
	defer func() {
		for _, c := range r.clients {
			c.Close()
		}
	}()
	for _, st := range s.steps {
		if err := r.step(st); err != nil {
			return r.told, r.sent, fmt.Errorf("%s: %q: %w", s.Name, s.lines[st.index], err)
		}
	}
	return r.told, r.sent, nil
}

// run is one play of a transcript.
type run struct {
	login   Login
	prepare func(*Client)
	clients map[string]*Client
	say     map[string][]byte // what a client has still to send
	told    map[int][]string
	sent    int
}

func (r *run) step(st step) error {
	switch st.kind {
	case '!':
		return r.act(st)
	case '>':
		b, err := Encode(st.words)
		r.say[st.client] = append(r.say[st.client], b...)
		return err
	}
	c := r.clients[st.client]
	if c == nil {
		return errors.New("there is no such client")
	}
	if err := r.flush(st.client); err != nil {
		return err
	}
	if st.words[0] == "EOF" {
		return r.untilEnd(c, st.index)
	}
	for _, typ := range []byte(st.words[0]) {
		got, err := c.Until(typ)
		for _, m := range got {
			r.told[st.index] = append(r.told[st.index], m.Show())
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (r *run) flush(name string) error {
	b := r.say[name]
	if len(b) == 0 {
		return nil
	}
	r.sent += len(b)
	delete(r.say, name)
	return r.clients[name].Send(b)
}

func (r *run) untilEnd(c *Client, index int) error {
	for {
		m, err := c.Receive()
		if errors.Is(err, io.EOF) || isReset(err) {
			r.told[index] = append(r.told[index], "the end")
			return nil
		}
		if err != nil {
			return err
		}
		r.told[index] = append(r.told[index], m.Show())
	}
}

func isReset(err error) bool {
	var op *net.OpError
	return errors.As(err, &op) && !op.Timeout()
}

func (r *run) act(st step) error {
	c := r.clients[st.client]
	switch verb := st.words[0]; verb {
	case "connect", "startup":
		return r.connect(st, verb == "startup")
	case "close", "reset", "halfclose":
		if err := r.flush(st.client); err != nil {
			return err
		}
		switch verb {
		case "close":
			delete(r.clients, st.client)
			return c.Close()
		case "reset":
			delete(r.clients, st.client)
			c.Reset()
			return nil
		}
		return c.HalfClose()
	default:
		return fmt.Errorf("%q is nothing that a client can do", verb)
	}
}

func (r *run) connect(st step, show bool) error {
	l := r.login
	pairs := st.words[1:]
	if show {
		v, err := strconv.ParseUint(pairs[0], 16, 32)
		if err != nil {
			return err
		}
		l.Version, pairs = uint32(v), pairs[1:]
	}
	for _, p := range pairs {
		k, v, _ := strings.Cut(p, "=")
		l.Params = append(l.Params, k, v)
	}
	c, err := Dial(l.Network, l.Address)
	if err != nil {
		return err
	}
	if r.prepare != nil {
		r.prepare(c)
	}
	r.clients[st.client] = c
	err = c.Login(l)
	var refused *Refused
	if show && errors.As(err, &refused) {
		r.told[st.index] = append(r.told[st.index], refused.Show())
		return nil
	}
	if show {
		for _, m := range c.Greeting {
			if m.Type == wire.ParameterStatus && strings.HasPrefix(string(m.Body), "server_version") {
				continue
			}
			r.told[st.index] = append(r.told[st.index], m.Show())
		}
	}
	return err
}

// Encode makes a message of its words in a transcript.
func Encode(words []string) ([]byte, error) {
	arg := func(i int) string {
		if i < len(words) {
			return words[i]
		}
		return ""
	}
	number := func(i int) uint64 {
		n, _ := strconv.ParseUint(arg(i), 10, 32) // 0 if it is not there
		return n
	}
	var m pgproto3.FrontendMessage
	switch words[0] {
	case "Query":
		m = &pgproto3.Query{String: arg(1)}
	case "Parse": // name, text, types
		p := &pgproto3.Parse{Name: arg(1), Query: arg(2)}
		for i := 3; i < len(words); i++ {
			p.ParameterOIDs = append(p.ParameterOIDs, uint32(number(i)))
		}
		m = p
	case "Bind": // portal, statement, values
		b := &pgproto3.Bind{DestinationPortal: arg(1), PreparedStatement: arg(2)}
		for _, v := range words[min(3, len(words)):] {
			b.Parameters = append(b.Parameters, []byte(v))
		}
		m = b
	case "BindBinaryResults":
		m = &pgproto3.Bind{DestinationPortal: arg(1), PreparedStatement: arg(2), ResultFormatCodes: []int16{1}}
	case "DescribeStatement":
		m = &pgproto3.Describe{ObjectType: 'S', Name: arg(1)}
	case "DescribePortal":
		m = &pgproto3.Describe{ObjectType: 'P', Name: arg(1)}
	case "Execute": // portal, rows
		m = &pgproto3.Execute{Portal: arg(1), MaxRows: uint32(number(2))}
	case "CloseStatement":
		m = &pgproto3.Close{ObjectType: 'S', Name: arg(1)}
	case "ClosePortal":
		m = &pgproto3.Close{ObjectType: 'P', Name: arg(1)}
	case "Sync":
		m = &pgproto3.Sync{}
	case "Flush":
		m = &pgproto3.Flush{}
	case "CopyData":
		m = &pgproto3.CopyData{Data: []byte(arg(1))}
	case "CopyDone":
		m = &pgproto3.CopyDone{}
	case "CopyFail":
		m = &pgproto3.CopyFail{Message: arg(1)}
	case "Terminate":
		m = &pgproto3.Terminate{}
	case "Call": // function, text arguments
		return call(uint32(number(1)), words[2:]), nil
	case "Hex":
		return hex.DecodeString(arg(1))
	default:
		return nil, fmt.Errorf("%q is no message", words[0])
	}
	return m.Encode(nil)
}

func call(oid uint32, args []string) []byte {
	b := binary.BigEndian.AppendUint32(nil, oid)
	b = append(b, 0, 0) // all arguments as text
	b = binary.BigEndian.AppendUint16(b, uint16(len(args)))
	for _, a := range args {
		b = append(binary.BigEndian.AppendUint32(b, uint32(len(a))), a...)
	}
	return wire.AppendRaw(nil, wire.FunctionCall, append(b, 0, 0))
}

// Clients is the number of clients in the transcript.
func (s *Script) Clients() int {
	names := map[string]bool{}
	for _, st := range s.steps {
		names[st.client] = true
	}
	return len(names)
}
