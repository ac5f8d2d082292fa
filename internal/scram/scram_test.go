package scram_test

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"strings"
	"testing"

	"github.com/pgebb/pgebb/internal/scram"
)

func derive(t testing.TB, password string) *scram.Verifier {
	t.Helper()
	v, err := scram.Derive(password, []byte("0123456789abcdef"), 64)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// login runs a whole exchange and returns the first error of either side.
func login(password string, verifiers ...*scram.Verifier) error {
	c, s := scram.NewClient(password), scram.NewServer(verifiers...)
	first, err := s.First(c.First())
	if err != nil {
		return err
	}
	final, err := c.Final(first)
	if err != nil {
		return err
	}
	done, err := s.Final(final)
	if err != nil {
		return err
	}
	return c.Verify(done)
}

func TestLogin(t *testing.T) {
	for name, c := range map[string]struct {
		password string
		known    []string
		want     error
	}{
		"the password":                         {"secret", []string{"secret"}, nil},
		"another":                              {"secret", []string{"other"}, scram.ErrPassword},
		"the second of several":                {"new", []string{"old", "new"}, nil},
		"none of several":                      {"x", []string{"old", "new"}, scram.ErrPassword},
		"an empty password":                    {"", []string{""}, nil},
		"one that SASLprep maps":               {"I\u00adX", []string{"IX"}, nil},
		"one that SASLprep refuses":            {"\x07bell", []string{"\x07bell"}, nil},
		"bytes that are no UTF-8":              {"\xff\xfe", []string{"\xff\xfe"}, nil},
		"a longer one with the same beginning": {"secretX", []string{"secret"}, scram.ErrPassword},
	} {
		var verifiers []*scram.Verifier
		for _, p := range c.known {
			verifiers = append(verifiers, derive(t, p))
		}
		if err := login(c.password, verifiers...); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
}

// TestKnownVerifier is the example of RFC 7677, section 3.
func TestKnownVerifier(t *testing.T) {
	v, err := scram.Parse("SCRAM-SHA-256$4096:W22ZaJ0SNY7soEsUEjb6gQ==$WG5d8oPm3OtcPnkdi4Uo7BkeZkBFzpcXkuLmtbsT4qY=:wfPLwcE6nTWhTAmQ7tl2KeoiWGPlZqQxSrmfPwDl2dU=")
	if err != nil {
		t.Fatal(err)
	}
	got, err := scram.Derive("pencil", v.Salt, v.Iterations)
	if err != nil {
		t.Fatal(err)
	}
	if got.String() != v.String() {
		t.Errorf("Derive = %s, want %s", got, v)
	}
}

func TestParseRefusesWhatIsNoVerifier(t *testing.T) {
	good := derive(t, "x").String()
	for _, s := range []string{
		"", "md5abc", "SCRAM-SHA-256$", good[:len(good)-4], strings.Replace(good, "$64:", "$0:", 1), strings.Replace(good, "$64:", "$x:", 1),
		strings.Replace(good, ":", "", 1), strings.Replace(good, "SHA-256", "SHA-1", 1), good + "AAAA",
	} {
		if v, err := scram.Parse(s); err == nil {
			t.Errorf("Parse(%q) = %v", s, v)
		}
	}
}

func TestServerRefusesMalformedMessages(t *testing.T) {
	v := derive(t, "x")
	for _, m := range []string{
		"", "n", "n,", "n,,", "x,,n=,r=abc", "p=tls-server-end-point,,n=,r=abc", "n,a=other,n=,r=abc", "n,,r=abc", "n,,n=", "n,,n=,r=",
		"n,,m=x,n=,r=abc", "n,,n=,r=" + strings.Repeat("a", 2000), "n,,n=,r=a\x01b",
	} {
		if _, err := scram.NewServer(v).First([]byte(m)); !errors.Is(err, scram.ErrMalformed) {
			t.Errorf("First(%q): %v", m, err)
		}
	}
	s := scram.NewServer(v)
	c := scram.NewClient("x")
	first, err := s.First(c.First())
	if err != nil {
		t.Fatal(err)
	}
	final, err := c.Final(first)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range []string{
		"", "c=biws", "c=eSws,r=a,p=b", "c=biws,r=wrong,p=AAAA", strings.Replace(string(final), ",p=", ",q=", 1),
		string(final[:len(final)-3]), string(final) + "A",
	} {
		if _, err := s.Final([]byte(m)); !errors.Is(err, scram.ErrMalformed) {
			t.Errorf("Final(%q): %v", m, err)
		}
	}
}

func TestClientRefusesHostileServers(t *testing.T) {
	c := scram.NewClient("x")
	ours, _, _ := strings.Cut(strings.TrimPrefix(string(c.First()), "n,,n=,r="), ",")
	for _, m := range []string{
		"", "r=" + ours + ",s=AAAA,i=1", "r=other,s=AAAA,i=1", "r=" + ours + "x,s=AAAA,i=0", "r=" + ours + "x,s=AAAA,i=999999999999",
		"r=" + ours + "x,s=AAAA,i=2000000000", "r=" + ours + "x,s=!,i=1", "r=" + ours + "x", "r=" + ours + strings.Repeat("x", 1<<16) + ",s=AAAA,i=1",
	} {
		if _, err := c.Final([]byte(m)); !errors.Is(err, scram.ErrMalformed) {
			t.Errorf("Final(%.60q): %v", m, err)
		}
	}
	if _, err := c.Final([]byte("r=" + ours + "x,s=AAAA,i=1")); err != nil {
		t.Fatal(err)
	}
	if err := c.Verify([]byte("v=AAAA")); !errors.Is(err, scram.ErrServer) {
		t.Errorf("a wrong signature: %v", err)
	}
	for _, m := range []string{"", "v=", "v=!", "e=other-error"} {
		if c.Verify([]byte(m)) == nil {
			t.Errorf("Verify(%q) is content", m)
		}
	}
}

// TestClientKeepsToTheOrder has a server that skips its question, and so proves to know
// a key that is none, and one that asks twice.
func TestClientKeepsToTheOrder(t *testing.T) {
	sum := func(key []byte, text string) []byte {
		h := hmac.New(sha256.New, key)
		h.Write([]byte(text))
		return h.Sum(nil)
	}
	c := scram.NewClient("x")
	first := c.First()
	forged := base64.StdEncoding.EncodeToString(sum(sum(nil, "Server Key"), ""))
	if err := c.Verify([]byte("v=" + forged)); !errors.Is(err, scram.ErrMalformed) {
		t.Errorf("a signature before the proof: %v", err)
	}
	s := scram.NewServer(derive(t, "x"))
	question, err := s.First(first)
	if err != nil {
		t.Fatal(err)
	}
	proof, err := c.Final(question)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Final(question); !errors.Is(err, scram.ErrMalformed) {
		t.Errorf("a second question: %v", err)
	}
	signature, err := s.Final(proof)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Verify(signature); err != nil {
		t.Errorf("the right signature after it: %v", err)
	}
}

func FuzzServer(f *testing.F) {
	v := derive(f, "x")
	f.Add([]byte("n,,n=,r=abc"), []byte("c=biws,r=abc,p=AAAA"))
	f.Add([]byte("p=x,,"), []byte(",p="))
	f.Add([]byte("y,,n=u,r=~,ext=1"), []byte("c=eSws,r=~,x=,p=,p="))
	f.Fuzz(func(t *testing.T, first, final []byte) {
		s := scram.NewServer(v)
		out, err := s.First(first)
		if err != nil {
			return
		}
		if !bytes.HasPrefix(out, []byte("r=")) {
			t.Fatalf("First = %q", out)
		}
		if out, err := s.Final(final); err == nil {
			t.Fatalf("somebody got in without the password: %q", out)
		}
	})
}

func FuzzClient(f *testing.F) {
	f.Add([]byte("r=,s=AAAA,i=1"), []byte("v=AAAA"))
	f.Fuzz(func(t *testing.T, first, final []byte) {
		c := scram.NewClient("x")
		ours := bytes.TrimPrefix(c.First(), []byte("n,,n=,r="))
		if bytes.Contains(first, []byte("i=9")) {
			return // only slow
		}
		if _, err := c.Final(append(append([]byte("r="), ours...), first...)); err != nil {
			return
		}
		if c.Verify(final) == nil {
			t.Fatal("a server got in without the password")
		}
	})
}

func FuzzParse(f *testing.F) {
	f.Add(derive(f, "x").String())
	f.Fuzz(func(t *testing.T, s string) {
		v, err := scram.Parse(s)
		if err != nil {
			return
		}
		again, err := scram.Parse(v.String())
		if err != nil || again.String() != v.String() {
			t.Fatalf("Parse(%q) does not print what it read: %v, %v", s, again, err)
		}
	})
}
