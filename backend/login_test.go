package backend

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/pgebb/pgebb/internal/scram"
	"github.com/pgebb/pgebb/internal/wire"
)

const testPassword = "correct horse"

// script is a server at the other end of a pipe that does as it is told. It is for one
// goroutine. Its errors do not matter: what counts is how our side ends.
type script struct {
	net.Conn
	said []byte // all that our side has said in password messages
}

// startup reads the StartupMessage and returns its pairs.
func (s *script) startup() []string {
	var size [4]byte
	if _, err := io.ReadFull(s, size[:]); err != nil {
		return nil
	}
	body := make([]byte, binary.BigEndian.Uint32(size[:])-4)
	if _, err := io.ReadFull(s, body); err != nil {
		return nil
	}
	return strings.Split(strings.TrimRight(string(body[4:]), "\x00"), "\x00")
}

// send writes messages until our side no longer reads.
func (s *script) send(messages ...[]byte) bool {
	for _, m := range messages {
		if _, err := s.Write(m); err != nil {
			return false
		}
	}
	return true
}

// ask sends an authentication request and returns the body of the answer.
func (s *script) ask(request uint32, data string) []byte {
	if !s.send(auth(request, data)) {
		return nil
	}
	var header [wire.HeaderSize]byte
	if _, err := io.ReadFull(s, header[:]); err != nil || header[0] != wire.Password {
		return nil
	}
	_, size := wire.Header(header[:])
	body := make([]byte, size-wire.HeaderSize)
	_, _ = io.ReadFull(s, body)
	s.said = append(s.said, body...)
	return body
}

// askSASL is ask for AuthenticationSASL, and returns the client-first-message and its
// nonce.
func (s *script) askSASL() (first []byte, nonce string) {
	body := s.ask(authSASL, scram.Mechanism+"\x00\x00")
	_, first, _ = bytes.Cut(body, []byte{0})
	first = first[min(len(first), 4):]
	_, nonce, _ = strings.Cut(string(first), "r=")
	return first, nonce
}

// scram is the server's side of SCRAM up to its signature, which is returned.
func (s *script) scram(password string) (signature []byte, err error) {
	v, err := scram.Derive(password, []byte("0123456789abcdef"), 64)
	if err != nil {
		return nil, err
	}
	server := scram.NewServer(v)
	first, _ := s.askSASL()
	question, err := server.First(first)
	if err != nil {
		return nil, err
	}
	return server.Final(s.ask(authSASLContinue, string(question)))
}

func auth(request uint32, data string) []byte {
	return wire.AppendRaw(nil, wire.Authentication, append(binary.BigEndian.AppendUint32(nil, request), data...))
}

func message(typ byte, body string) []byte { return wire.AppendRaw(nil, typ, []byte(body)) }

var (
	letIn = auth(authOK, "")
	ready = wire.AppendReadyForQuery(nil, wire.Idle)
	no    = wire.AppendFields(nil, wire.ErrorResponse, wire.Field{Type: 'S', Value: "FATAL"}, wire.Field{Type: 'C', Value: "28P01"}, wire.Field{Type: 'M', Value: "no"})
)

// logInTo logs in to a server that, having read the StartupMessage, follows a script.
// It returns what our side has said in password messages.
func logInTo(t *testing.T, password string, follow func(*script)) (s *Session, said []byte, err error) {
	t.Helper()
	ours, theirs := net.Pipe()
	server := &script{Conn: theirs}
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer theirs.Close()
		server.startup()
		follow(server)
	}()
	s, err = logIn(ours, Target{User: "u", Database: "d"}, password)
	ours.Close()
	<-done
	return s, server.said, err
}

// forged is the signature of a server that knows no key, of a login without messages.
func forged() string {
	sum := func(key []byte, text string) []byte {
		h := hmac.New(sha256.New, key)
		h.Write([]byte(text))
		return h.Sum(nil)
	}
	return "v=" + base64.StdEncoding.EncodeToString(sum(sum(nil, "Server Key"), ""))
}

// hostile are servers that do not keep to the protocol, and what is said of them.
var hostile = map[string]struct {
	follow func(*script)
	want   string
}{
	"says nothing":          {func(*script) {}, "the server closed the connection during the login: EOF"},
	"stops in a header":     {func(s *script) { s.send([]byte("R\x00")) }, "the server closed the connection"},
	"stops in a body":       {func(s *script) { s.send(letIn[:7]) }, "the server closed the connection"},
	"a length too short":    {func(s *script) { s.send([]byte("R\x00\x00\x00\x03")) }, "message 'R' with a length of 3 bytes"},
	"a length too long":     {func(s *script) { s.send([]byte("R\x7f\xff\xff\xff")) }, "message 'R' with a length of 2147483647 bytes"},
	"the longest length":    {func(s *script) { s.send([]byte("S\xff\xff\xff\xff")) }, "message 'S' with a length of 4294967295 bytes"},
	"an error of version 2": {func(s *script) { s.send([]byte("Ecould not fork new process\n\x00")) }, "the server says: could not fork new process"},
	"an error without end":  {func(s *script) { s.send(bytes.Repeat([]byte("Endless "), 1000)) }, "the server says: ndless Endless"},
	"endless notices": {func(s *script) {
		for s.send(message(wire.NoticeResponse, "\x00")) {
		}
	}, "more than 10000 messages during the login"},
	"endless parameters": {func(s *script) {
		s.send(letIn)
		for s.send(wire.AppendParameterStatus(nil, "p", strings.Repeat("x", 1<<19))) {
		}
	}, "more than 4194304 bytes during the login"},
	"rows":                           {func(s *script) { s.send(message(wire.DataRow, "\x00\x00")) }, "message 'D' during the login"},
	"another version":                {func(s *script) { s.send(message('v', "\x00\x03\x00\x00\x00\x00\x00\x00")) }, "message 'v' during the login"},
	"a key too early":                {func(s *script) { s.send(wire.AppendBackendKeyData(nil, 1, []byte("abcd"))) }, "message 'K' before authentication"},
	"a parameter too early":          {func(s *script) { s.send(wire.AppendParameterStatus(nil, "a", "b")) }, "message 'S' before authentication"},
	"ready too early":                {func(s *script) { s.send(ready) }, "message 'Z' before authentication"},
	"an empty request":               {func(s *script) { s.send(message(wire.Authentication, "\x00\x00\x00")) }, "malformed authentication request"},
	"another method":                 {func(s *script) { s.send(auth(7, "")) }, "authentication method 7, which is not supported"},
	"no SASL mechanism":              {func(s *script) { s.send(auth(authSASL, "")) }, "no SASL mechanism that is supported"},
	"other SASL mechanisms":          {func(s *script) { s.send(auth(authSASL, "SCRAM-SHA-256-PLUS\x00OAUTHBEARER\x00\x00")) }, "no SASL mechanism that is supported"},
	"SASL goes on at once":           {func(s *script) { s.send(auth(authSASLContinue, "r=x,s=AAAA,i=1")) }, "goes on with SASL before it has begun"},
	"SASL ends at once":              {func(s *script) { s.send(auth(authSASLFinal, forged())) }, "goes on with SASL before it has begun"},
	"SASL without a proof":           {func(s *script) { s.askSASL(); s.send(letIn, ready) }, "skips its part of SCRAM"},
	"SASL without a question":        {func(s *script) { s.askSASL(); s.send(auth(authSASLFinal, forged()), letIn, ready) }, "before it has asked for a proof"},
	"SASL without a signature":       {func(s *script) { _, _ = s.scram(testPassword); s.send(letIn, ready) }, "skips its part of SCRAM"},
	"SASL begins twice":              {func(s *script) { s.askSASL(); s.askSASL() }, "a second time"},
	"another nonce":                  {func(s *script) { s.askSASL(); s.ask(authSASLContinue, "r=other,s=AAAA,i=1") }, "does not continue ours"},
	"iterations for years":           {func(s *script) { _, n := s.askSASL(); s.ask(authSASLContinue, "r="+n+"x,s=AAAA,i=2000000000") }, "iteration count of 2000000000"},
	"two questions":                  {func(s *script) { _, _ = s.scram(testPassword); s.ask(authSASLContinue, "r=x,s=AAAA,i=1") }, "starts once more"},
	"another password":               {func(s *script) { _, _ = s.scram("other"); s.send(auth(authSASLFinal, "v=AAAA"), letIn, ready) }, scram.ErrServer.Error()},
	"a refusal in SASL":              {func(s *script) { _, _ = s.scram("other"); s.send(auth(authSASLFinal, "e=invalid-proof")) }, "the server refuses: invalid-proof"},
	"a salt for MD5 too short":       {func(s *script) { s.ask(authMD5, "abc") }, "MD5 salt of the wrong length"},
	"two passwords":                  {func(s *script) { s.ask(authCleartext, ""); s.ask(authCleartext, "") }, "a second time"},
	"authentication after it":        {func(s *script) { s.send(letIn); s.ask(authCleartext, "") }, "after it has let us in"},
	"lets in twice":                  {func(s *script) { s.send(letIn, letIn) }, "after it has let us in"},
	"a key too short":                {func(s *script) { s.send(letIn, wire.AppendBackendKeyData(nil, 1, []byte("abc"))) }, "BackendKeyData of 7 bytes"},
	"a key too long":                 {func(s *script) { s.send(letIn, wire.AppendBackendKeyData(nil, 1, make([]byte, 257))) }, "BackendKeyData of 261 bytes"},
	"a parameter without a value":    {func(s *script) { s.send(letIn, message(wire.ParameterStatus, "a\x00")) }, "malformed ParameterStatus"},
	"a parameter without an end":     {func(s *script) { s.send(letIn, message(wire.ParameterStatus, "a\x00b")) }, "malformed ParameterStatus"},
	"ready in a transaction":         {func(s *script) { s.send(letIn, wire.AppendReadyForQuery(nil, wire.InTransaction)) }, `transaction status of "T"`},
	"ready without a status":         {func(s *script) { s.send(letIn, message(wire.ReadyForQuery, "")) }, `transaction status of ""`},
	"a password in place of a proof": {func(s *script) { s.askSASL(); s.ask(authCleartext, "") }, "a second time"},
}

func TestServersThatDoNotKeepToTheProtocol(t *testing.T) {
	for name, c := range hostile {
		t.Run(strings.ReplaceAll(name, " ", "-"), func(t *testing.T) {
			_, said, err := logInTo(t, testPassword, c.follow)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("the error is %v, want %q", err, c.want)
			}
			if err != nil && strings.Contains(err.Error(), testPassword) {
				t.Errorf("the error tells the password: %v", err)
			}
			if name != "two passwords" && bytes.Contains(said, []byte(testPassword)) {
				t.Errorf("the password is told: %q", said)
			}
		})
	}
}

func TestNoPasswordIsTold(t *testing.T) {
	for _, request := range []uint32{authCleartext, authMD5, authSASL} {
		_, said, err := logInTo(t, "", func(s *script) { s.ask(request, "abcd") })
		if err == nil || !strings.Contains(err.Error(), "server_password") || len(said) > 0 {
			t.Errorf("request %d is answered %q, the error is %v", request, said, err)
		}
	}
}

func TestLogins(t *testing.T) {
	longest := bytes.Repeat([]byte("k"), 256)
	for name, c := range map[string]struct {
		follow func(*script)
		want   Session
	}{
		"without a password": {func(s *script) { s.send(letIn) }, Session{}},
		"in clear text": {func(s *script) {
			if string(s.ask(authCleartext, "")) == testPassword+"\x00" {
				s.send(letIn)
			}
		}, Session{}},
		"by MD5": {func(s *script) {
			if string(s.ask(authMD5, "abcd")) == MD5Response("u", testPassword, [4]byte([]byte("abcd")))+"\x00" {
				s.send(letIn)
			}
		}, Session{}},
		"by SCRAM": {func(s *script) {
			if signature, err := s.scram(testPassword); err == nil {
				s.send(auth(authSASLFinal, string(signature)), letIn)
			}
		}, Session{}},
		"a key":         {func(s *script) { s.send(letIn, wire.AppendBackendKeyData(nil, 7, []byte("abcd"))) }, Session{PID: 7, Secret: []byte("abcd")}},
		"a longest key": {func(s *script) { s.send(letIn, wire.AppendBackendKeyData(nil, 7, longest)) }, Session{PID: 7, Secret: longest}},
		"parameters and notices": {func(s *script) {
			notice := wire.AppendFields(nil, wire.NoticeResponse, wire.Field{Type: 'M', Value: "x"})
			s.send(notice, letIn, wire.AppendParameterStatus(nil, "b", "1"), notice, wire.AppendParameterStatus(nil, "a", ""))
		}, Session{Params: []Param{{"b", "1"}, {"a", ""}}}},
	} {
		t.Run(strings.ReplaceAll(name, " ", "-"), func(t *testing.T) {
			s, _, err := logInTo(t, testPassword, func(s *script) { c.follow(s); s.send(ready) })
			if err != nil {
				t.Fatal(err)
			}
			s.Conn = nil
			if !reflect.DeepEqual(*s, c.want) {
				t.Errorf("the session is %+v, want %+v", *s, c.want)
			}
		})
	}
}

// TestStartupMessage has the server read what it is told about us.
func TestStartupMessage(t *testing.T) {
	ours, theirs := net.Pipe()
	got := make(chan []string, 1)
	go func() {
		defer theirs.Close()
		got <- (&script{Conn: theirs}).startup()
	}()
	_, err := logIn(ours, Target{User: "u", Database: "d", Params: []Param{{"application_name", "a b"}, {"x", "1"}}}, "")
	if err == nil {
		t.Error("a login to nobody succeeds")
	}
	ours.Close()
	if want := []string{"user", "u", "database", "d", "application_name", "a b", "x", "1"}; !reflect.DeepEqual(<-got, want) {
		t.Errorf("the server is not told %q", want)
	}
}

// canned is a connection that reads a text and keeps what is written.
type canned struct {
	net.Conn
	io.Reader
	wrote bytes.Buffer
}

func (c *canned) Read(p []byte) (int, error)  { return c.Reader.Read(p) }
func (c *canned) Write(p []byte) (int, error) { return c.wrote.Write(p) }

func TestALoginReadsNotAByteTooMany(t *testing.T) {
	greeting := bytes.Join([][]byte{letIn, wire.AppendParameterStatus(nil, "a", "b"), wire.AppendBackendKeyData(nil, 7, []byte("abcd")), ready}, nil)
	for name, reader := range map[string]func(io.Reader) io.Reader{"whole": func(r io.Reader) io.Reader { return r }, "in single bytes": iotest.OneByteReader} {
		in := bytes.NewReader(append(bytes.Clone(greeting), "next"...))
		s, err := logIn(&canned{Reader: reader(in)}, Target{User: "u", Database: "d"}, "")
		if err != nil || s.PID != 7 || len(s.Params) != 1 {
			t.Errorf("%s: %+v, %v", name, s, err)
		}
		if in.Len() != len("next") {
			t.Errorf("%s: %d bytes are left, want %d", name, in.Len(), len("next"))
		}
	}
	for cut := range greeting {
		if s, err := logIn(&canned{Reader: bytes.NewReader(greeting[:cut])}, Target{User: "u", Database: "d"}, ""); err == nil {
			t.Errorf("cut off at byte %d: %+v", cut, s)
		}
	}
}

func TestWhatTheServerSaysIsKept(t *testing.T) {
	for name, c := range map[string]struct {
		said          []byte
		code, message string
	}{
		"an error":           {no, "28P01", "no"},
		"without a SQLSTATE": {wire.AppendFields(nil, wire.ErrorResponse, wire.Field{Type: 'M', Value: "no"}), "", "no"},
		"without anything":   {message(wire.ErrorResponse, ""), "", ""},
		"without an end":     {message(wire.ErrorResponse, "Sxyz"), "", ""},
	} {
		for when, before := range map[string][]byte{"at once": nil, "after authentication": letIn} {
			_, _, err := logInTo(t, "", func(s *script) { s.send(before, c.said) })
			var se *ServerError
			if !errors.As(err, &se) {
				t.Errorf("%s, %s: %v", name, when, err)
				continue
			}
			if se.Code() != c.code || se.Message() != c.message || !bytes.Equal(se.Encode(), c.said) {
				t.Errorf("%s, %s: code %q, message %q, bytes %q", name, when, se.Code(), se.Message(), se.Encode())
			}
		}
	}
}

// placeholder stands for our nonce in what the fuzzed server says.
const placeholder = "NNNNNNNNNNNNNNNNNNNNNNNN"

// echo is canned with our nonce put in.
type echo struct {
	canned
	rest []byte
}

func (e *echo) Read(p []byte) (int, error) {
	if _, nonce, ok := bytes.Cut(e.wrote.Bytes(), []byte("n,,n=,r=")); ok {
		e.rest = bytes.ReplaceAll(e.rest, []byte(placeholder), nonce[:len(placeholder)])
	}
	if len(e.rest) == 0 {
		return 0, io.EOF
	}
	n := copy(p, e.rest)
	e.rest = e.rest[n:]
	return n, nil
}

func FuzzServerLogin(f *testing.F) {
	sasl := auth(authSASL, scram.Mechanism+"\x00\x00")
	question := auth(authSASLContinue, "r="+placeholder+"x,s=AAAA,i=1")
	for _, seed := range [][][]byte{
		{letIn, ready},
		{letIn, wire.AppendParameterStatus(nil, "a", "b"), wire.AppendBackendKeyData(nil, 7, []byte("abcd")), ready, ready},
		{auth(authCleartext, ""), letIn, ready},
		{auth(authMD5, "abcd"), letIn, no},
		{sasl, question, auth(authSASLFinal, "v=AAAA"), letIn, ready},
		{sasl, auth(authSASLFinal, forged()), letIn, ready},
		{[]byte("Ecould not fork\n\x00")},
	} {
		f.Add(bytes.Join(seed, nil))
	}
	slow := regexp.MustCompile(`i=[0-9]{5}`)
	f.Fuzz(func(t *testing.T, in []byte) {
		if slow.Match(in) {
			return // only slow
		}
		conn := &echo{rest: bytes.Clone(in)}
		s, err := logIn(conn, Target{User: "u", Database: "d"}, testPassword)
		if bytes.Contains(conn.wrote.Bytes(), []byte(testPassword)) && !bytes.Contains(in, auth(authCleartext, "")[5:]) {
			t.Fatal("the password is told to somebody who has not asked for it")
		}
		if err != nil {
			return
		}
		if bytes.Contains(conn.wrote.Bytes(), []byte(scram.Mechanism)) {
			t.Fatal("a server got through SCRAM without the password")
		}
		if read := in[:len(in)-len(conn.rest)]; !bytes.HasSuffix(read, ready) {
			t.Fatalf("the login ends behind %q", read)
		}
		if n := len(s.Secret); n != 0 && (n < minSecret || n > maxSecret) {
			t.Fatalf("a secret of %d bytes", n)
		}
	})
}
