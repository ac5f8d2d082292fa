package backend

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"io"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pgebb/pgebb/config"
	"github.com/pgebb/pgebb/internal/scram"
	"github.com/pgebb/pgebb/internal/testcert"
	"github.com/pgebb/pgebb/internal/wire"
)

func TestCertificatesAreForHosts(t *testing.T) {
	leaf := func(cn string, names []string, ips ...string) *x509.Certificate {
		c := &x509.Certificate{Subject: pkix.Name{CommonName: cn}, DNSNames: names}
		for _, ip := range ips {
			c.IPAddresses = append(c.IPAddresses, net.ParseIP(ip))
		}
		return c
	}
	for _, c := range []struct {
		cert *x509.Certificate
		host string
		good bool
	}{
		{leaf("db.example.com", nil), "db.example.com", true},
		{leaf("DB.Example.com", nil), "db.example.com", true},
		{leaf("db.example.com", nil), "other.example.com", false},
		{leaf("*.example.com", nil), "db.example.com", true},
		{leaf("*.example.com", nil), "a.db.example.com", false},
		{leaf("*.example.com", nil), ".example.com", false},
		{leaf("*.example.com", nil), "example.com", false},
		{leaf("*", nil), "db", false},
		{leaf("", nil), "db", false},
		{leaf("db", []string{"other"}), "db", false},
		{leaf("db", []string{"other"}), "other", true},
		{leaf("db", nil, "10.0.0.1"), "db", true}, // it has none of the host's kind
		{leaf("10.0.0.1", nil), "10.0.0.1", true},
		{leaf("10.0.0.1", []string{"db"}), "10.0.0.1", true},
		{leaf("10.0.0.1", nil, "10.0.0.2"), "10.0.0.1", false},
		{leaf("", nil, "10.0.0.2"), "10.0.0.2", true},
		{leaf("*.0.0.1", nil), "10.0.0.1", false},
	} {
		if err := verifyHost(c.cert, c.host); (err == nil) != c.good {
			t.Errorf("common name %q, names %q, addresses %v, for %s: %v", c.cert.Subject.CommonName, c.cert.DNSNames, c.cert.IPAddresses, c.host, err)
		}
	}
}

// secured is a server's certificate and who trusts it.
type secured struct {
	server *tls.Config
	trust  *x509.CertPool
}

func newSecured(t *testing.T, o testcert.Options) secured {
	t.Helper()
	authority, err := testcert.New(0)
	if err != nil {
		t.Fatal(err)
	}
	c, err := authority.Issue(o)
	if err != nil {
		t.Fatal(err)
	}
	return secured{&tls.Config{Certificates: []tls.Certificate{c.TLS()}}, authority.Pool()}
}

// sslRequest reads one, and answers it.
func (s *script) sslRequest(answer string) bool {
	var b [8]byte
	if _, err := io.ReadFull(s, b[:]); err != nil || b[4] != 0x04 || b[5] != 0xd2 {
		return false
	}
	s.send([]byte(answer))
	return true
}

// shakeHands goes on with TLS.
func (s *script) shakeHands(cfg *tls.Config) bool {
	conn := tls.Server(s.Conn, cfg)
	if conn.Handshake() != nil {
		return false
	}
	s.Conn = conn
	return true
}

func connectWith(t *testing.T, target Target, verify config.TLSVerify, trust *x509.CertPool) (*Session, error) {
	t.Helper()
	target.TLS = NewTLS(config.ServerTLS{Verify: verify, Authorities: trust})
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	s, err := Connect(ctx, target)
	if err == nil {
		t.Cleanup(func() { s.Conn.Close() })
	}
	return s, err
}

func TestAnswersToTheRequestForTLS(t *testing.T) {
	sec := newSecured(t, testcert.Options{IPs: []string{"127.0.0.1"}})
	tooMany := string(wire.AppendFields(nil, wire.ErrorResponse, wire.Field{Type: 'S', Value: "FATAL"}, wire.Field{Type: 'C', Value: "53300"}, wire.Field{Type: 'M', Value: "too many"}))
	for _, c := range []struct {
		name   string
		verify config.TLSVerify
		answer string
		want   string // in the error; empty for none
	}{
		{"none is asked for", config.VerifyDisabled, "", ""},
		{"yes", config.VerifyFull, "S", ""},
		{"no", config.VerifyPrefer, "N", ""},
		{"no, and it must", config.VerifyCA, "N", "the server has no TLS"},
		{"an error", config.VerifyPrefer, tooMany, "53300"},
		{"an old error", config.VerifyPrefer, "Ecould not fork\x00", "the server says: could not fork"},
		{"nothing", config.VerifyPrefer, "", "closed the connection"},
		{"something else", config.VerifyPrefer, "HTTP", "the server answers 'H'"},
	} {
		target := listen(t, "tcp", "127.0.0.1:0", func(s *script) {
			if c.verify != config.VerifyDisabled && !s.sslRequest(c.answer) {
				return
			}
			if c.answer == "S" && !s.shakeHands(sec.server) || c.answer != "S" && c.answer != "N" && c.verify != config.VerifyDisabled {
				return
			}
			s.startup()
			s.send(letIn, ready)
		})
		_, err := connectWith(t, target, c.verify, sec.trust)
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
	}
}

func TestTLSIsOnlyPreferred(t *testing.T) {
	noEntry := wire.AppendFields(nil, wire.ErrorResponse, wire.Field{Type: 'S', Value: "FATAL"}, wire.Field{Type: 'C', Value: "28000"}, wire.Field{Type: 'M', Value: "no pg_hba.conf entry"})
	sec := newSecured(t, testcert.Options{})
	for name, broken := range map[string]func(*script){
		"the handshake fails":    func(s *script) { s.send([]byte("this is no TLS")) },
		"it is not to be secure": func(s *script) { s.shakeHands(sec.server); s.startup(); s.send(noEntry) },
	} {
		asks := make(chan bool, 10)
		target := listen(t, "tcp", "127.0.0.1:0", func(s *script) {
			var head [8]byte
			if _, err := io.ReadFull(s, head[:]); err != nil {
				return
			}
			asked := head[4] == 0x04
			asks <- asked
			if asked {
				s.send([]byte{'S'})
				broken(s)
				return
			}
			_, _ = io.CopyN(io.Discard, s, int64(head[3])-8)
			s.send(letIn, ready)
		})
		if _, err := connectWith(t, target, config.VerifyPrefer, nil); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := connectWith(t, target, config.VerifyCA, sec.trust); err == nil {
			t.Errorf("%s: pgebb goes on without TLS, which is demanded", name)
		}
		close(asks)
		if got := slices.Collect(func(yield func(bool) bool) {
			for a := range asks {
				if !yield(a) {
					return
				}
			}
		}); !slices.Equal(got, []bool{true, false, true}) {
			t.Errorf("%s: TLS is asked for in these connections: %v", name, got)
		}
	}
}

func TestACancelRequestIsAsSecretAsItsConnection(t *testing.T) {
	sec := newSecured(t, testcert.Options{})
	got := make(chan string, 1)
	target := listen(t, "tcp", "127.0.0.1:0", func(s *script) {
		if !s.sslRequest("S") || !s.shakeHands(sec.server) {
			return
		}
		var b [16]byte
		if _, err := io.ReadFull(s, b[:]); err == nil {
			got <- string(b[:])
		}
	})
	target.TLS = NewTLS(config.ServerTLS{Verify: config.VerifyPrefer}).Insisting()
	if err := Cancel(context.Background(), target, 7, []byte("abcd")); err != nil {
		t.Fatal(err)
	}
	if b := <-got; b != string(wire.AppendCancelRequest(nil, 7, []byte("abcd"))) {
		t.Errorf("the server gets %q", b)
	}
	plain := listen(t, "tcp", "127.0.0.1:0", func(s *script) {
		s.sslRequest("N")
		rest, _ := io.ReadAll(s)
		got <- string(rest)
	})
	plain.TLS = target.TLS
	if err := Cancel(context.Background(), plain, 7, []byte("abcd")); err == nil {
		t.Error("the key of an encrypted connection is sent in clear text")
	}
	if b := <-got; b != "" {
		t.Errorf("a server without TLS gets %q", b)
	}
}

// boundLogin is a server that logs in by SCRAM, over TLS, and offers mechanisms.
func boundLogin(t *testing.T, cfg *tls.Config, data []byte, offer string, chosen chan<- string) func(*script) {
	v, err := scram.Derive("secret", scram.NewSalt(), 64)
	if err != nil {
		t.Fatal(err)
	}
	return func(s *script) {
		if !s.sslRequest("S") || !s.shakeHands(cfg) {
			return
		}
		s.startup()
		answer := string(s.ask(authSASL, offer))
		mechanism, rest, _ := strings.Cut(answer, "\x00")
		server := scram.NewServer(v)
		server.Bind(data, mechanism == scram.MechanismPlus)
		if len(rest) < 4 {
			return
		}
		chosen <- mechanism + " " + rest[4:5]
		first, err := server.First([]byte(rest[4:]))
		if err != nil {
			s.send(no)
			return
		}
		final, err := server.Final(s.ask(authSASLContinue, string(first)))
		if err != nil {
			s.send(no)
			return
		}
		s.send(wire.AppendRaw(nil, wire.Authentication, append([]byte{0, 0, 0, authSASLFinal}, final...)), letIn, ready)
	}
}

func TestSCRAMIsBoundToTheServersCertificate(t *testing.T) {
	sec := newSecured(t, testcert.Options{})
	leaf := sec.server.Certificates[0].Leaf
	const plain, both = scram.Mechanism + "\x00\x00", scram.MechanismPlus + "\x00" + scram.Mechanism + "\x00\x00"
	for name, c := range map[string]struct {
		data          []byte
		offer, chosen string
		fails         bool
	}{
		"offered":                  {scram.EndPoint(leaf), both, scram.MechanismPlus + " p", false},
		"not offered":              {nil, plain, scram.Mechanism + " y", false},
		"the offer is taken away":  {scram.EndPoint(leaf), plain, scram.Mechanism + " y", true},
		"somebody is between":      {[]byte("another certificate"), both, scram.MechanismPlus + " p", true},
		"only what is not for all": {scram.EndPoint(leaf), scram.MechanismPlus + "\x00\x00", scram.MechanismPlus + " p", false},
	} {
		chosen := make(chan string, 1)
		target := listen(t, "tcp", "127.0.0.1:0", boundLogin(t, sec.server, c.data, c.offer, chosen))
		target.Passwords = []string{"secret"}
		_, err := connectWith(t, target, config.VerifyPrefer, nil)
		if (err != nil) != c.fails {
			t.Errorf("%s: %v", name, err)
		}
		if got := <-chosen; got != c.chosen {
			t.Errorf("%s: pgebb chooses %q, want %q", name, got, c.chosen)
		}
	}
}

func TestServerCertificatesAreVerified(t *testing.T) {
	sec, other := newSecured(t, testcert.Options{CommonName: "127.0.0.1"}), newSecured(t, testcert.Options{})
	expired := newSecured(t, testcert.Options{CommonName: "127.0.0.1", Expired: true})
	for _, c := range []struct {
		name   string
		server secured
		verify config.TLSVerify
		trust  *x509.CertPool
		want   string
	}{
		{"all is good", sec, config.VerifyFull, sec.trust, ""},
		{"unknown authority", sec, config.VerifyCA, other.trust, "unknown authority"},
		{"no authority", sec, config.VerifyCA, nil, "unknown authority"}, // but for those of the system
		{"expired", expired, config.VerifyCA, expired.trust, "expired"},
		{"for nobody", other, config.VerifyFull, other.trust, "it is for no host"},
		{"for nobody, and that is not asked", other, config.VerifyCA, other.trust, ""},
		{"nothing is asked", expired, config.VerifyPrefer, nil, ""},
	} {
		target := listen(t, "tcp", "127.0.0.1:0", func(s *script) {
			if s.sslRequest("S") && s.shakeHands(c.server.server) {
				s.startup()
				s.send(letIn, ready)
			}
		})
		_, err := connectWith(t, target, c.verify, c.trust)
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
		if c.want != "" && !errors.Is(err, errHandshake) {
			t.Errorf("%s: %v is no failure of the handshake", c.name, err)
		}
	}
}
