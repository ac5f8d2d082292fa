package e2e

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/pgebb/pgebb/frontend/frontendtest"
	"github.com/pgebb/pgebb/internal/scram"
	"github.com/pgebb/pgebb/internal/testpg"
	"github.com/pgebb/pgebb/internal/wire"
)

func TestLogins(t *testing.T) {
	pg := testpg.ForTest(t)
	database := pg.Database(t)
	verifier, err := scram.Derive("from a hash", scram.NewSalt(), 100)
	if err != nil {
		t.Fatal(err)
	}
	for _, auth := range []string{"scram", "md5", "plain", "trust"} {
		t.Run(auth, func(t *testing.T) {
			o := pg.Options(database, "transaction", 2)
			o.General += fmt.Sprintf("auth_type = %q\n", auth)
			o.Users += fmt.Sprintf("[[users]]\nname = \"two\"\npasswords = [\"old\", \"new\"]\ndatabase = %q\nserver_user = %q\nserver_password = %q\n", database, database, database)
			o.Users += fmt.Sprintf("[[users]]\nname = \"hashed\"\npassword_hash = %q\ndatabase = %q\nserver_user = %q\nserver_password = %q\n", verifier, database, database, database)
			o.Users += "[[users]]\nname = \"elsewhere\"\npassword = \"e\"\n"
			p := testpg.Pgebb(t, o)
			for _, c := range []struct{ user, password, database, want string }{
				{database, database, database, ""},
				{database, "wrong", database, "28P01"},
				{database, database, database, ""}, // a wrong password does not spoil the right one
				{"nobody", "x", database, "28P01"},
				{"nobody", "x", "nowhere", "28P01"},
				{database, database, "nowhere", "3D000"},
				{"elsewhere", "e", database, "28000"},
				{"two", "old", database, ""},
				{"two", "new", database, ""},
				{"two", "other", database, "28P01"},
				{"hashed", "from a hash", database, ""},
				{"hashed", "wrong", database, "28P01"},
			} {
				want := c.want
				if auth == "trust" && want == "28P01" && c.user != "nobody" {
					want = ""
				}
				if auth == "md5" && c.user == "hashed" {
					want = "28P01" // MD5 cannot be checked with a SCRAM verifier
				}
				client, err := frontendtest.Connect(frontendtest.Login{Network: "tcp", Address: p.Address(), User: c.user, Password: c.password, Database: c.database})
				if code(err) != want || want == "" && err != nil {
					t.Errorf("%s with password %q at %s: %v, want %q", c.user, c.password, c.database, err, want)
				}
				if err == nil {
					query(t, client, "SELECT 1")
					client.Close()
				}
			}
		})
	}
}

func TestAWrongPasswordAndAnUnknownUserAreToldTheSame(t *testing.T) {
	pg := testpg.ForTest(t)
	database := pg.Database(t)
	p := testpg.Pgebb(t, pg.Options(database, "transaction", 1))
	tell := func(user string) string {
		_, err := frontendtest.Connect(frontendtest.Login{Network: "tcp", Address: p.Address(), User: user, Password: "wrong", Database: database})
		var refused *frontendtest.Refused
		if !errors.As(err, &refused) {
			t.Fatalf("%s: %v", user, err)
		}
		return strings.ReplaceAll(refused.Show(), user, "USER")
	}
	if a, b := tell(database), tell("nobody"); a != b {
		t.Errorf("a wrong password: %s\nan unknown user: %s", a, b)
	}
}

func TestWhatPostgresSaysToOurLoginReachesTheClient(t *testing.T) {
	pg := testpg.ForTest(t)
	database := pg.Database(t)
	for name, c := range map[string]struct {
		users, databases string
		code             string
	}{
		"a wrong password for the server": {fmt.Sprintf("server_password = %q\n", "wrong"), "", "28P01"},
		"a database that is not there":    {"", "database_name = \"nowhere\"\n", "3D000"},
	} {
		t.Run(strings.ReplaceAll(name, " ", "-"), func(t *testing.T) {
			o := pg.Options(database, "transaction", 1)
			o.Users += c.users
			o.Config += c.databases
			p := testpg.Pgebb(t, o)
			if _, err := frontendtest.Connect(through(p, database)); code(err) != c.code {
				t.Errorf("the client is told %v, want %s", err, c.code)
			}
		})
	}
}

func TestAServerThatCannotBeReached(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := ln.Addr().(*net.TCPAddr).Port
	ln.Close()
	p := testpg.Pgebb(t, testpg.Options{
		General: "checkout_timeout = 300\n",
		Config:  fmt.Sprintf("[[databases]]\nname = \"d\"\nhost = \"127.0.0.1\"\nport = %d\n", port),
		Users:   "[[users]]\nname = \"u\"\npassword = \"p\"\ndatabase = \"d\"\n",
	})
	_, err = frontendtest.Connect(frontendtest.Login{Network: "tcp", Address: p.Address(), User: "u", Password: "p", Database: "d"})
	if code(err) != "58000" {
		t.Errorf("the client is told %v", err)
	}
	inLogOnly(t, p, err, "connection refused")
}

// raw sends bytes on a fresh connection and returns what comes back until its end.
func raw(t *testing.T, p *testpg.Process, b []byte, half bool) []byte {
	t.Helper()
	c, err := frontendtest.Dial("tcp", p.Address())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if err := c.Send(b); err != nil {
		t.Fatal(err)
	}
	if half {
		_ = c.HalfClose() // it may be closed already
	}
	_ = c.SetReadDeadline(time.Now().Add(10 * time.Second))
	got, err := io.ReadAll(c)
	if err != nil && !strings.Contains(err.Error(), "reset") {
		t.Errorf("after %.40q: %v", b, err)
	}
	return got
}

func TestStartupPackets(t *testing.T) {
	pg := testpg.ForTest(t)
	database := pg.Database(t)
	o := pg.Options(database, "transaction", 1)
	o.General += "auth_type = \"trust\"\n"
	p := testpg.Pgebb(t, o)
	length := func(n uint32) []byte { return binary.BigEndian.AppendUint32(nil, n) }
	for name, c := range map[string]struct {
		send []byte
		want string // what comes back contains it; empty for nothing at all
	}{
		"SSLRequest and GSSENCRequest": {
			append(append(length(8), length(wire.GSSENCRequestCode)...), append(length(8), length(wire.SSLRequestCode)...)...), "NN",
		},
		"garbage":            {[]byte("GET / HTTP/1.1\r\nHost: x\r\n\r\n"), ""},
		"a length too short": {append(length(4), 0, 0, 0, 0), ""},
		"a length too long":  {append(length(1<<30), 0, 3, 0, 0), ""},
		"version 2.0":        {append(append(length(8), length(2<<16)...), 0), "0A000"},
		"no user":            {wire.AppendStartup(nil, wire.Version30, "database", "x"), "28000"},
		"no terminator":      {append(length(13), "\x00\x03\x00\x00user\x00"...), "08P01"},
		"replication":        {wire.AppendStartup(nil, wire.Version30, "user", database, "replication", "true"), "0A000"},
		"a bad option":       {wire.AppendStartup(nil, wire.Version30, "user", database, "options", "-B 12"), "invalid command-line argument"},
		"an unknown setting": {wire.AppendStartup(nil, wire.Version30, "user", database, "no_such_parameter", "1"), "WARNING\x00C42704"},
		"another 3.x":        {wire.AppendStartup(nil, 3<<16|9999, "user", database, "_pq_.x", "1", "_pq_.y", ""), "v\x00\x00\x00\x1a\x00\x03\x00\x02\x00\x00\x00\x02_pq_.x\x00_pq_.y\x00R"},
		"3.2":                {wire.AppendStartup(nil, 3<<16|2, "user", database), "K\x00\x00\x00\x28"},
		"3.0":                {wire.AppendStartup(nil, wire.Version30, "user", database), "K\x00\x00\x00\x0c"},
		"20 KB of options":   {wire.AppendStartup(nil, wire.Version30, "user", database, "options", "-c search_path="+strings.Repeat("x,", 10_000)+"y"), "Z\x00\x00\x00\x05I"},
	} {
		t.Run(strings.ReplaceAll(name, " ", "-"), func(t *testing.T) {
			for _, chunk := range []bool{false, true} {
				got := send(t, p, c.send, chunk)
				if c.want == "" && len(got) > 0 || !strings.Contains(string(got), c.want) {
					t.Errorf("in single bytes: %v: %.200q comes back, want %q", chunk, got, c.want)
				}
			}
		})
	}
}

// send sends a start-up packet, whole or byte by byte, and ends its side.
func send(t *testing.T, p *testpg.Process, b []byte, chunk bool) []byte {
	t.Helper()
	if !chunk || len(b) > 1000 {
		return raw(t, p, b, true)
	}
	c, err := frontendtest.Dial("tcp", p.Address())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	c.Chunk = 1
	if err := c.Send(b); err != nil {
		return nil // closed in the middle of it
	}
	_ = c.HalfClose()
	_ = c.SetReadDeadline(time.Now().Add(10 * time.Second))
	got, _ := io.ReadAll(c) // a reset is as good as an end
	return got
}

func TestEveryAddressIsListenedAt(t *testing.T) {
	pg := testpg.ForTest(t)
	database := pg.Database(t)
	o := pg.Options(database, "transaction", 1)
	p := testpg.Pgebb(t, o)
	unix := frontendtest.Login{Network: "unix", Address: fmt.Sprintf("%s/.s.PGSQL.%d", p.Dir, p.Port), User: database, Password: database, Database: database}
	query(t, connect(t, unix), "SELECT 1")
	if _, err := os.Stat(unix.Address); err != nil {
		t.Error(err)
	}
}

func TestClientsThatDoNotLogInAreClosed(t *testing.T) {
	pg := testpg.ForTest(t)
	database := pg.Database(t)
	o := pg.Options(database, "transaction", 1)
	o.General += "client_login_timeout = 200\n"
	p := testpg.Pgebb(t, o)
	if got := raw(t, p, []byte{0, 0}, false); len(got) > 0 {
		t.Errorf("%q comes back", got)
	}
}
