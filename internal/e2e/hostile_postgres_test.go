package e2e

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/pgebb/pgebb/backend/backendtest"
	"github.com/pgebb/pgebb/frontend/frontendtest"
	"github.com/pgebb/pgebb/internal/testpg"
	"github.com/pgebb/pgebb/internal/wire"
)

// behindFake is a pgebb whose Postgres is a fake.
func behindFake(t *testing.T, general string) (*backendtest.Fake, *testpg.Process, frontendtest.Login) {
	t.Helper()
	f, err := backendtest.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(f.Stop)
	p := testpg.Pgebb(t, testpg.Options{
		General: "pooler_mode = \"transaction\"\ndefault_pool_size = 1\nauth_type = \"trust\"\nlog_level = \"error\"\nrollback_timeout = 500\n" + general,
		Config:  fmt.Sprintf("[[databases]]\nname = \"fake\"\nhost = \"127.0.0.1\"\nport = %d\n", f.Port()),
		Users:   "[[users]]\nname = \"fake\"\npassword = \"fake\"\ndatabase = \"fake\"\n",
	})
	return f, p, frontendtest.Login{Network: "tcp", Address: p.Address(), User: "fake", Password: "fake", Database: "fake"}
}

// misSized is a message with a length of its own, which may be wrong.
func misSized(typ byte, length int32, body string) []byte {
	return append(binary.BigEndian.AppendUint32([]byte{typ}, uint32(length)), body...)
}

func message(typ byte, body string) []byte { return wire.AppendRaw(nil, typ, []byte(body)) }

// The answer of a Postgres to a Query, to the batch of [batch], and to a COPY in both directions.
var (
	description = string(binary.BigEndian.AppendUint16([]byte("\x00\x01c\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x19\xff\xff\xff\xff\xff\xff"), 0))
	dataRow     = message('D', "\x00\x01\x00\x00\x00\x03row")
	end         = join(message('C', "SELECT 2\x00"), message('Z', "I"))
	answers     = map[string][]byte{
		"query":   join(message('T', description), dataRow, dataRow, end),
		"batch":   join(message('1', ""), message('2', ""), message('T', description), dataRow, end),
		"copyOut": join(message('H', "\x00\x00\x00"), message('d', "a\n"), message('d', "b\n"), message('c', ""), message('C', "COPY 2\x00"), message('Z', "I")),
		"copyIn":  join(message('G', "\x00\x00\x00")),
		"failure": join(message('E', "SERROR\x00VERROR\x00CXX000\x00Mno\x00\x00"), message('Z', "I")),
	}
)

func join(parts ...[]byte) []byte { return bytes.Join(parts, nil) }

// askedFor is what a client says for each of the answers.
func askedFor(t *testing.T, what string) []byte {
	if what == "batch" {
		return encoded(t, append(batch("SELECT 1"), &pgproto3.Sync{})...)
	}
	return encoded(t, &pgproto3.Query{String: what})
}

// wellFormed goes through what a client was told, and says whether it ends with an error.
func wellFormed(b []byte) (whole []byte, types string, rest []byte) {
	all := b
	for len(b) >= wire.HeaderSize {
		typ, size := wire.Header(b)
		if size > len(b) || size < wire.HeaderSize {
			break
		}
		types += string(typ)
		b = b[size:]
	}
	return all[:len(all)-len(b)], types, b
}

// TestPostgresThatEndsAtAnyByte has a server end at each byte of its answer. The client gets
// what came of it and then an error, unless it has got a part of a message: then just the end,
// because anything behind it would be taken for the rest.
func TestPostgresThatEndsAtAnyByte(t *testing.T) {
	t.Parallel()
	f, p, login := behindFake(t, "")
	for what, answer := range answers {
		for cut := range len(answer) {
			f.Answer(func(conn net.Conn, typ byte) bool {
				if typ != wire.Query && typ != wire.Sync {
					return true
				}
				_, _ = conn.Write(answer[:cut])
				return false
			})
			c := connectFake(t, login)
			if err := c.Send(askedFor(t, what)); err != nil {
				t.Fatal(err)
			}
			_ = c.SetReadDeadline(time.Now().Add(10 * time.Second))
			got, err := io.ReadAll(c)
			c.Close()
			if err != nil && !errors.Is(err, io.EOF) {
				t.Fatalf("%s, cut at byte %d: %q, %v", what, cut, got, err)
			}
			whole, types, rest := wellFormed(got)
			switch {
			case len(rest) > 0:
				if !bytes.HasPrefix(answer[:cut], got) {
					t.Errorf("%s, cut at byte %d: told %q, which is not what the server has said", what, cut, got)
				}
			case len(types) == 0 || types[len(types)-1] != 'E':
				t.Errorf("%s, cut at byte %d: told %q (%q), and no error", what, cut, types, whole)
			}
			healthy(t, f, login, what, cut)
		}
	}
	noneLeft(t, p, f)
}

// connectFake logs in.
func connectFake(t *testing.T, login frontendtest.Login) *frontendtest.Client {
	t.Helper()
	c, err := frontendtest.Connect(login)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// healthy makes the fake answer as it should and checks that a client gets that and nothing
// else.
func healthy(t *testing.T, f *backendtest.Fake, login frontendtest.Login, what ...any) {
	t.Helper()
	f.Answer(nil)
	c, err := frontendtest.Connect(login)
	if err != nil {
		t.Fatalf("after %v: %v", what, err)
	}
	defer c.Close()
	if err := c.Say(&pgproto3.Query{String: "SELECT"}); err != nil {
		t.Fatal(err)
	}
	if got, err := c.Until('Z'); err != nil || frontendtest.Types(got) != "CZ" {
		t.Fatalf("after %v the next client is told %q, %v", what, frontendtest.Types(got), err)
	}
}

// noneLeft checks that no server is in use and that there were never too many.
func noneLeft(t *testing.T, p *testpg.Process, f *backendtest.Fake) {
	t.Helper()
	eventually(t, 5*time.Second, func() string { return poolBusy(t, p, "fake") })
	if f.Most() > 1+1 { // a cancel request has a connection of its own
		t.Errorf("%d connections to a Postgres that may have 1", f.Most())
	}
}

// nonsense is what no Postgres says, at least not there.
var nonsense = map[string][]byte{
	"length 0":                         misSized('D', 0, ""),
	"length 3":                         misSized('T', 3, ""),
	"negative length":                  misSized('C', -1, ""),
	"the longest length":               misSized('D', 1<<31-1, "x"),
	"a long error":                     misSized('E', 1<<30, "x"),
	"a long ReadyForQuery":             misSized('Z', 1<<20, "x"),
	"a long ParameterStatus":           misSized('S', 1<<20, "x"),
	"a long CommandComplete":           misSized('C', 1<<20, "x"),
	"ReadyForQuery without a status":   message('Z', ""),
	"ReadyForQuery with two":           message('Z', "II"),
	"ReadyForQuery with a strange one": message('Z', "X"),
	"ReadyForQuery in a transaction":   message('Z', "T"),
	"two ReadyForQuery":                join(message('Z', "I"), message('Z', "I")),
	"ReadyForQuery and more":           join(message('Z', "I"), dataRow),
	"an error without fields":          message('E', "\x00"),
	"an error without anything":        message('E', ""),
	"an error that does not end":       message('E', "SERROR"),
	"a ParameterStatus without values": message('S', ""),
	"a ParameterStatus without an end": message('S', "a\x00b"),
	"a CommandComplete without an end": message('C', "SELECT 1"),
	"a CommandComplete without a tag":  message('C', ""),
	"a DISCARD without an end":         message('C', "DISCARD ALL"),
	"an unknown type":                  message('~', "what"),
	"type 0":                           message(0, ""),
	"a request for a password":         message('R', "\x00\x00\x00\x03"),
	"a key":                            message('K', "\x00\x00\x00\x03\x00\x00\x00\x03"),
	"a negotiation":                    message('v', "\x00\x03\x00\x00\x00\x00\x00\x00"),
	"ParseComplete":                    message('1', ""),
	"BindComplete with a body":         message('2', "x"),
	"CloseComplete":                    message('3', ""),
	"PortalSuspended":                  message('s', ""),
	"ParameterDescription":             message('t', ""),
	"CopyInResponse":                   message('G', ""),
	"CopyOutResponse":                  message('H', "\x00"),
	"CopyBothResponse":                 message('W', "\x00\x00\x00"),
	"CopyDone":                         message('c', ""),
	"a notification without anything":  message('A', ""),
	"a notice without anything":        message('N', ""),
	"a row without anything":           message('D', ""),
}

// TestPostgresThatSaysNonsense has a server say what it must not at the beginning and in the
// middle of its answers, in front of the rest of them and in front of its end. The client comes
// to an end of some kind, and the next one has a server that is in order.
func TestPostgresThatSaysNonsense(t *testing.T) {
	t.Parallel()
	f, p, login := behindFake(t, "")
	for name, bad := range nonsense {
		for _, what := range []string{"query", "batch", "copyIn"} {
			answer := answers[what]
			_, size := wire.Header(answer)
			for _, goesOn := range []bool{true, false} {
				for _, at := range []int{0, size} {
					var said atomic.Bool
					f.Answer(func(conn net.Conn, typ byte) bool {
						switch {
						case typ == wire.Terminate:
							return false
						case typ != wire.Query && typ != wire.Sync:
							return true
						case said.Swap(true): // pgebb's own, to bring it in order
							_, err := conn.Write(end)
							return err == nil
						}
						_, _ = conn.Write(join(answer[:at], bad, answer[at:]))
						return goesOn
					})
					c := connectFake(t, login)
					c.Patience = 100 * time.Millisecond // a server may always say that more is to come
					if err := c.Send(askedFor(t, what)); err != nil {
						t.Fatal(err)
					}
					if _, err := c.Until('Z'); err != nil && !goesOn && timedOut(err) {
						t.Errorf("%s at byte %d of the answer to %s, and then the end: the client is told nothing of it", name, at, what)
					}
					c.Close()
					healthy(t, f, login, name, what, at, goesOn)
				}
			}
		}
	}
	noneLeft(t, p, f)
}

// timedOut reports whether nothing came in time.
func timedOut(err error) bool {
	var n net.Error
	return errors.As(err, &n) && n.Timeout()
}

// TestPostgresThatSpeaksUnasked has an idle server say something: it is not used again, and
// no client is told of it.
func TestPostgresThatSpeaksUnasked(t *testing.T) {
	t.Parallel()
	f, p, login := behindFake(t, "")
	c := connectFake(t, login)
	defer c.Close()
	for name, bad := range nonsense {
		for _, more := range [][]byte{nil, end} {
			f.Say(join(bad, more))
			for range 2 {
				if err := c.Say(&pgproto3.Query{String: "SELECT"}); err != nil {
					t.Fatal(err)
				}
				got, err := c.Until('Z')
				if types := frontendtest.Types(got); err != nil || types != "CZ" {
					c.Close() // it may have come in the middle of a request
					c = connectFake(t, login)
					if len(types) == 0 || types[len(types)-1] != 'E' && types[len(types)-1] != 'Z' {
						t.Errorf("%s: told %q, %v", name, types, err)
					}
				}
			}
		}
	}
	noneLeft(t, p, f)
}

// TestPostgresThatIsStrangeAtLogin: whatever a server says during the login, the client is
// told that there is none, in time.
func TestPostgresThatIsStrangeAtLogin(t *testing.T) {
	t.Parallel()
	// With no server kept open, pgebb knows nothing of a login that went well.
	f, p, login := behindFake(t, "min_pool_size = 0\ncheckout_timeout = 100\nconnect_timeout = 100\nconnect_attempts = 1\n")
	good := join(message('R', "\x00\x00\x00\x00"), message('S', "server_version\x0015\x00"), message('K', "\x00\x00\x00\x01\x00\x00\x00\x01"), message('Z', "I"))
	greetings := map[string][]byte{}
	for name, bad := range nonsense {
		greetings[name] = bad
	}
	for cut := 0; cut < len(good); cut += 4 {
		greetings[fmt.Sprintf("cut at byte %d", cut)] = good[:cut]
	}
	for name, greeting := range greetings {
		for _, stay := range []bool{false, true} {
			if stay && len(greeting)%3 > 0 {
				continue // each takes as long as the timeout
			}
			f.Greet(greeting, stay)
			c, err := frontendtest.Connect(login)
			var refused *frontendtest.Refused
			switch {
			case err == nil:
				c.Close()
				t.Errorf("%s: the client is let in", name)
			case !errors.As(err, &refused):
				t.Errorf("%s: the client is told %v", name, err)
			}
		}
	}
	f.Greet(nil, false)
	eventually(t, 10*time.Second, func() string { // a server that cannot be reached is not tried all the time
		c, err := frontendtest.Connect(login)
		if err != nil {
			return err.Error()
		}
		c.Close()
		return ""
	})
	healthy(t, f, login, "all of it")
	noneLeft(t, p, f)
}
