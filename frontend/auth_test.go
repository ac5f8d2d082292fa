package frontend

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pgebb/pgebb/backend"
	"github.com/pgebb/pgebb/config"
	"github.com/pgebb/pgebb/internal/scram"
	"github.com/pgebb/pgebb/internal/wire"
)

// loadConfig reads a configuration with lines for [general] and tables.
func loadConfig(t testing.TB, general, tables, users string) *config.Config {
	t.Helper()
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	cfg, problems := config.Load(config.Source{
		ConfigPath: write("pgdog.toml", "[general]\n"+general+"\n"+tables), UsersPath: write("users.toml", users),
	})
	if err := problems.Err(); err != nil {
		t.Fatal(err)
	}
	return cfg
}

// authConfigFor has users with every kind of password.
func authConfigFor(t testing.TB, authType string) *config.Config {
	t.Helper()
	hash, err := scram.Derive("from a hash", []byte("0123456789abcdef"), 64)
	if err != nil {
		t.Fatal(err)
	}
	users := `
[[users]]
name = "one"
password = "sesame street"
database = "d"
[[users]]
name = "two"
passwords = ["old", "new"]
database = "d"
[[users]]
name = "none"
database = "d"
`
	users += fmt.Sprintf("[[users]]\nname = \"hashed\"\npassword_hash = %q\ndatabase = \"d\"\n", hash)
	users += fmt.Sprintf("[[users]]\nname = \"both\"\npassword = \"in clear\"\npassword_hash = %q\ndatabase = \"d\"\n", hash)
	users += fmt.Sprintf("[[users]]\nname = \"md5\"\npassword_hash = %q\ndatabase = \"d\"\n", backend.MD5Hash("md5", "from MD5"))
	return loadConfig(t, fmt.Sprintf("auth_type = %q", authType), "[admin]\npassword = \"of the console\"\n[[databases]]\nname = \"d\"\nhost = \"127.0.0.1\"\n", users)
}

// prompt is a client that is being asked for its password.
type prompt struct {
	net.Conn
	user, password string
	requests       []byte // codes, one byte each
	transcript     []string
}

// next returns the next authentication request.
func (p *prompt) next() (request uint32, data []byte, err error) {
	var header [wire.HeaderSize]byte
	if _, err := io.ReadFull(p, header[:]); err != nil {
		return 0, nil, err
	}
	_, size := wire.Header(header[:])
	body := make([]byte, size-wire.HeaderSize)
	if _, err := io.ReadFull(p, body); err != nil {
		return 0, nil, err
	}
	request = binary.BigEndian.Uint32(body)
	p.requests = append(p.requests, byte(request))
	p.transcript = append(p.transcript, string(body[4:]))
	return request, body[4:], nil
}

func (p *prompt) say(body []byte) error {
	_, err := p.Write(wire.AppendRaw(nil, wire.Password, body))
	return err
}

// answer does what it is asked for until it is let in.
func (p *prompt) answer() error { return p.answerAs(scram.NewClient(p.password)) }

func (p *prompt) answerAs(client *scram.Client) error {
	for {
		request, data, err := p.next()
		if err != nil {
			return err
		}
		var body []byte
		switch request {
		case requestOK:
			return nil
		case requestCleartext:
			body = append([]byte(p.password), 0)
		case requestMD5:
			body = append([]byte(backend.MD5Response(p.user, p.password, [4]byte(data))), 0)
		case requestSASL:
			body = initialResponse(scram.Mechanism, client.First())
		case requestSASLContinue:
			if body, err = client.Final(data); err != nil {
				return err
			}
		case requestSASLFinal:
			if err := client.Verify(data); err != nil {
				return err
			}
			continue
		}
		if err := p.say(body); err != nil {
			return err
		}
	}
}

func initialResponse(mechanism string, first []byte) []byte {
	body := binary.BigEndian.AppendUint32([]byte(mechanism+"\x00"), uint32(len(first)))
	return append(body, first...)
}

// atOnce has a password judged without a wait.
func atOnce() error { return nil }

// authenticate has a client follow a script while it is authenticated.
func authenticate(a *Authenticator, user, database, password string, follow func(*prompt) error) (p *prompt, client, ours error) {
	theirs, conn := net.Pipe()
	p = &prompt{Conn: theirs, user: user, password: password}
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer theirs.Close()
		client = follow(p)
	}()
	ours = a.Authenticate(conn, &startup{User: user, Database: database}, atOnce)
	conn.Close()
	<-done
	return p, client, ours
}

func sqlstate(err error) string {
	var e *Error
	if errors.As(err, &e) {
		return e.Code
	}
	return ""
}

func TestWhoGetsIn(t *testing.T) {
	const all = "scram md5 plain"
	for _, authType := range strings.Fields(all) {
		a := NewAuthenticator(authConfigFor(t, authType), nil)
		for _, c := range []struct{ user, password, in string }{
			{"one", "sesame street", all},
			{"one", "sesame stree", ""},
			{"one", "sesame street ", ""},
			{"one", "", ""},
			{"two", "old", all},
			{"two", "new", all},
			{"two", "old\x00new", ""},
			{"two", "", ""},
			{"none", "", ""},
			{"none", "x", ""},
			{"nobody", "sesame street", ""},
			{"nobody", "", ""},
			{"hashed", "from a hash", "scram plain"},
			{"hashed", "x", ""},
			{"both", "in clear", all},
			{"both", "from a hash", "scram plain"},
			{"both", "x", ""},
			{"md5", "from MD5", "md5 plain"},
			{"md5", backend.MD5Hash("md5", "from MD5"), ""},
			{"md5", "x", ""},
		} {
			in := strings.Contains(c.in, authType)
			for _, database := range []string{"d", "nowhere"} {
				_, client, err := authenticate(a, c.user, database, c.password, (*prompt).answer)
				if in != (err == nil) || in != (client == nil) {
					t.Errorf("%s: %s with the password %q at %s: %v; the client: %v", authType, c.user, c.password, database, err, client)
				}
				if !in && sqlstate(err) != "28P01" && !strings.Contains(c.password, "\x00") {
					t.Errorf("%s: %s with the password %q is told %v", authType, c.user, c.password, err)
				}
			}
		}
	}
}

func TestTrust(t *testing.T) {
	a := NewAuthenticator(authConfigFor(t, "trust"), nil)
	p, client, err := authenticate(a, "one", "d", "wrong", (*prompt).answer)
	if client != nil || err != nil || !bytes.Equal(p.requests, []byte{requestOK}) {
		t.Errorf("a user is asked %d: %v, %v", p.requests, client, err)
	}
	if p, _, err := authenticate(a, "nobody", "d", "x", (*prompt).answer); sqlstate(err) != "28P01" || len(p.requests) > 0 {
		t.Errorf("an unknown user is asked %d: %v", p.requests, err)
	}
}

func TestTheConsoleIsForItsUserOnly(t *testing.T) {
	for _, authType := range []string{"scram", "md5", "plain", "trust"} {
		a := NewAuthenticator(authConfigFor(t, authType), nil)
		for _, c := range []struct {
			user, password string
			in             bool
		}{
			{"admin", "of the console", true},
			{"admin", "wrong", false},
			{"one", "sesame street", false},
			{"one", "of the console", false},
			{"nobody", "of the console", false},
		} {
			if _, _, err := authenticate(a, c.user, "admin", c.password, (*prompt).answer); (err == nil) != c.in {
				t.Errorf("%s: %s with the password %q: %v", authType, c.user, c.password, err)
			}
		}
		if _, _, err := authenticate(a, "admin", "d", "of the console", (*prompt).answer); sqlstate(err) != "28P01" {
			t.Errorf("%s: the console's user at a database: %v", authType, err)
		}
	}
}

// TestUnknownUsersAreAskedAsOthers compares what is said to a user with a wrong password
// and to one who does not exist.
func TestUnknownUsersAreAskedAsOthers(t *testing.T) {
	for _, authType := range []string{"scram", "md5", "plain"} {
		a := NewAuthenticator(authConfigFor(t, authType), nil)
		ask := func(user string) (*prompt, string) {
			p, _, err := authenticate(a, user, "d", "wrong", (*prompt).answer)
			var e *Error
			if !errors.As(err, &e) {
				t.Fatalf("%s: %s is told %v", authType, user, err)
			}
			if e.Cause == "" {
				t.Errorf("%s: the log does not say why %s is refused", authType, user)
			}
			e.Cause = "" // is not told
			return p, strings.ReplaceAll(fmt.Sprintf("%+v", *e), user, "USER")
		}
		known, told := ask("one")
		unknown, toldUnknown := ask("nobody")
		again, _ := ask("nobody")
		if told != toldUnknown || !bytes.Equal(known.requests, unknown.requests) {
			t.Errorf("%s: a user is asked %d and told %s, one who does not exist is asked %d and told %s", authType, known.requests, told, unknown.requests, toldUnknown)
		}
		if authType != "scram" {
			continue
		}
		k, u, v := challenge(t, known), challenge(t, unknown), challenge(t, again)
		if k.iterations != u.iterations || len(k.salt) != len(u.salt) || k.nonce != u.nonce {
			t.Errorf("a user gets the challenge %+v, one who does not exist %+v", k, u)
		}
		if u.salt != v.salt || u.salt == k.salt {
			t.Errorf("a user who does not exist has the salt %x, then %x; another %x", u.salt, v.salt, k.salt)
		}
	}
}

type saslChallenge struct {
	nonce            int // bytes
	salt, iterations string
}

// challenge is what a client was told in AuthenticationSASLContinue.
func challenge(t *testing.T, p *prompt) saslChallenge {
	t.Helper()
	parts := strings.Split(p.transcript[1], ",")
	if len(parts) != 3 {
		t.Fatalf("the challenge is %q", p.transcript[1])
	}
	salt, err := base64.StdEncoding.DecodeString(parts[1][2:])
	if err != nil {
		t.Fatal(err)
	}
	return saslChallenge{len(parts[0]), string(salt), parts[2]}
}

func TestAClientMayLeaveOutItsInitialResponse(t *testing.T) {
	a := NewAuthenticator(authConfigFor(t, "scram"), nil)
	for password, in := range map[string]bool{"sesame street": true, "wrong": false} {
		p, _, err := authenticate(a, "one", "d", password, func(p *prompt) error {
			client := scram.NewClient(p.password)
			if _, _, err := p.next(); err != nil {
				return err
			}
			if err := p.say([]byte(scram.Mechanism + "\x00\xff\xff\xff\xff")); err != nil {
				return err
			}
			if _, data, err := p.next(); err != nil || len(data) > 0 {
				return fmt.Errorf("it is asked %q: %w", data, err)
			}
			if err := p.say(client.First()); err != nil {
				return err
			}
			return p.answerAs(client)
		})
		if (err == nil) != in {
			t.Errorf("with the password %q: %v, after %d", password, err, p.requests)
		}
	}
}

func TestAnswersThatAreNone(t *testing.T) {
	authenticators := map[string]*Authenticator{}
	for _, authType := range []string{"scram", "md5", "plain"} {
		authenticators[authType] = NewAuthenticator(authConfigFor(t, authType), nil)
	}
	password := func(body string) []byte { return wire.AppendRaw(nil, wire.Password, []byte(body)) }
	sasl := func(first string) []byte { return password(string(initialResponse(scram.Mechanism, []byte(first)))) }
	for name, c := range map[string]struct {
		auth, says string
		code, text string // text is in the message or the detail
	}{
		"another message in SASL":   {"scram", "Q\x00\x00\x00\x05\x00", "08P01", "expected SASL response, got message type 81"},
		"another message":           {"plain md5", "Q\x00\x00\x00\x05\x00", "08P01", "expected password response, got message type 81"},
		"a length too short":        {"plain scram md5", "p\x00\x00\x00\x03", "08P01", "invalid password packet size"},
		"a length too long":         {"plain scram md5", "p\x00\x00\x20\x00", "08P01", "invalid password packet size"},
		"the longest length":        {"plain scram md5", "p\xff\xff\xff\xff", "08P01", "invalid password packet size"},
		"nothing":                   {"plain scram md5", "", "", "EOF"},
		"half a header":             {"plain scram md5", "p\x00\x00", "", "EOF"},
		"half a body":               {"plain scram md5", "p\x00\x00\x00\x08ab", "", "EOF"},
		"no NUL":                    {"plain md5", string(password("abc")), "08P01", "invalid password packet size"},
		"a NUL inside":              {"plain md5", string(password("a\x00b\x00")), "08P01", "invalid password packet size"},
		"an empty message":          {"plain md5", string(password("")), "08P01", "invalid password packet size"},
		"an empty password":         {"plain md5", string(password("\x00")), "28P01", "empty password returned by client"},
		"something else than MD5":   {"md5", string(password("sesame street\x00")), "28P01", "password authentication failed"},
		"no mechanism":              {"scram", string(password("")), "08P01", "invalid string"},
		"no length":                 {"scram", string(password(scram.Mechanism + "\x00\x00")), "08P01", "insufficient data left"},
		"another mechanism":         {"scram", string(password("PLAIN\x00\x00\x00\x00\x00")), "08P01", "invalid SASL authentication mechanism"},
		"the mechanism in clear":    {"scram", string(password("sesame street\x00")), "08P01", "invalid SASL authentication mechanism"},
		"a length of less":          {"scram", string(password(scram.Mechanism + "\x00\x00\x00\x00\x01n,,")), "08P01", "invalid message format"},
		"a length of more":          {"scram", string(password(scram.Mechanism + "\x00\x7f\xff\xff\xffn,,")), "08P01", "insufficient data left"},
		"a negative length":         {"scram", string(password(scram.Mechanism + "\x00\xff\xff\xff\xfe")), "08P01", "insufficient data left"},
		"none, and more":            {"scram", string(password(scram.Mechanism + "\x00\xff\xff\xff\xffn,,")), "08P01", "invalid message format"},
		"no SCRAM":                  {"scram", string(sasl("hello")), "08P01", "no channel binding flag"},
		"channel binding":           {"scram", string(sasl("p=tls-server-end-point,,n=,r=a")), "08P01", "sends channel binding data"},
		"another identity":          {"scram", string(sasl("n,a=root,n=,r=a")), "08P01", "authorization identity"},
		"no nonce":                  {"scram", string(sasl("n,,n=")), "08P01", "attribute 'r' is missing"},
		"a nonce too long":          {"scram", string(sasl("n,,n=,r=" + strings.Repeat("a", 5000))), "08P01", "a nonce of 5000 bytes"},
		"a proof for another nonce": {"scram", string(sasl("n,,n=,r=a")) + string(password("c=biws,r=a,p=AAAA")), "08P01", "the nonce is not the one given"},
		"an end without a proof":    {"scram", string(sasl("n,,n=,r=a")) + string(password("")), "08P01", "attribute 'c' is missing"},
	} {
		for _, authType := range strings.Fields(c.auth) {
			for _, user := range []string{"one", "nobody"} {
				_, _, err := authenticate(authenticators[authType], user, "d", "", func(p *prompt) error {
					go func() { _, _ = io.Copy(io.Discard, p.Conn) }() // ends with the connection
					_, err := p.Write([]byte(c.says))
					return err
				})
				var e *Error
				text := fmt.Sprint(err)
				if errors.As(err, &e) {
					text = e.Message + " " + e.Detail
				}
				if sqlstate(err) != c.code || !strings.Contains(text, c.text) {
					t.Errorf("%s, %s, %s: %q with %q, want %q with %q", name, authType, user, sqlstate(err), text, c.code, c.text)
				}
			}
		}
	}
}

func TestANewConfigurationHoldsAtOnce(t *testing.T) {
	cfg := func(password string) *config.Config {
		return loadConfig(t, "", "[[databases]]\nname = \"d\"\nhost = \"127.0.0.1\"\n", fmt.Sprintf("[[users]]\nname = \"u\"\npassword = %q\ndatabase = \"d\"\n", password))
	}
	a := NewAuthenticator(cfg("before"), nil)
	for _, password := range []string{"before", "after"} {
		if _, _, err := authenticate(a, "u", "d", password, (*prompt).answer); (err == nil) != (password == "before") {
			t.Errorf("%s: %v", password, err)
		}
	}
	a.Update(cfg("after"))
	for _, password := range []string{"before", "after"} {
		if _, _, err := authenticate(a, "u", "d", password, (*prompt).answer); (err == nil) != (password == "after") {
			t.Errorf("after the reload: %s: %v", password, err)
		}
	}
}

func FuzzAuthenticate(f *testing.F) {
	f.Add(byte(0), wire.AppendRaw(nil, wire.Password, initialResponse(scram.Mechanism, []byte("n,,n=,r=abc"))))
	f.Add(byte(0), append(wire.AppendRaw(nil, wire.Password, initialResponse(scram.Mechanism, []byte("y,,n=u,r=abc"))), wire.AppendRaw(nil, wire.Password, []byte("c=eSws,r=abc,p=AAAA"))...))
	f.Add(byte(0), wire.AppendRaw(nil, wire.Password, []byte(scram.Mechanism+"\x00\xff\xff\xff\xff")))
	f.Add(byte(1), wire.AppendRaw(nil, wire.Password, []byte("md50123456789abcdef0123456789abcdef\x00")))
	f.Add(byte(2), wire.AppendRaw(nil, wire.Password, []byte("secret\x00")))
	f.Add(byte(2), []byte("p\x00\x00\x00\x03"))
	var authenticators []*Authenticator
	for _, authType := range []string{"scram", "md5", "plain"} {
		authenticators = append(authenticators, NewAuthenticator(authConfigFor(f, authType), nil))
	}
	f.Fuzz(func(t *testing.T, which byte, in []byte) {
		a := authenticators[int(which)%len(authenticators)]
		for _, user := range []string{"one", "nobody"} {
			conn := &script{Reader: bytes.NewReader(in)}
			err := a.Authenticate(conn, &startup{User: user, Database: "d"}, atOnce)
			if err == nil && !bytes.Contains(in, []byte("sesame street")) {
				t.Fatalf("%s got in without the password", user)
			}
			if err != nil && sqlstate(err) == "" && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
				t.Fatalf("%s is closed without a word: %v", user, err)
			}
			if err != nil && bytes.Contains(conn.wrote.Bytes(), []byte("R\x00\x00\x00\x08\x00\x00\x00\x00")) {
				t.Fatal("it is told that it is in, and is not")
			}
		}
	})
}
