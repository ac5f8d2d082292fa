package scram_test

import (
	"crypto/sha256"
	"crypto/sha512"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"strings"
	"testing"

	"github.com/pgebb/pgebb/internal/scram"
	"github.com/pgebb/pgebb/internal/testcert"
)

func TestTheEndPointIsHashedAsTheCertificateIsSigned(t *testing.T) {
	for algorithm, size := range map[x509.SignatureAlgorithm]int{
		x509.ECDSAWithSHA256: sha256.Size, x509.ECDSAWithSHA384: sha512.Size384, x509.ECDSAWithSHA512: sha512.Size,
		x509.SHA256WithRSA: sha256.Size, x509.SHA384WithRSA: sha512.Size384, x509.SHA512WithRSA: sha512.Size,
		x509.SHA256WithRSAPSS: sha256.Size, x509.SHA384WithRSAPSS: sha512.Size384, x509.SHA512WithRSAPSS: sha512.Size,
		x509.PureEd25519: 0,
	} {
		authority, err := testcert.New(algorithm)
		if err != nil {
			t.Fatal(err)
		}
		c, err := authority.Issue(testcert.Options{CommonName: "x", Algorithm: algorithm})
		if err != nil {
			t.Fatal(err)
		}
		var want []byte
		switch size {
		case sha256.Size:
			sum := sha256.Sum256(c.Leaf.Raw)
			want = sum[:]
		case sha512.Size384:
			sum := sha512.Sum384(c.Leaf.Raw)
			want = sum[:]
		case sha512.Size:
			sum := sha512.Sum512(c.Leaf.Raw)
			want = sum[:]
		}
		if got := scram.EndPoint(c.Leaf); string(got) != string(want) {
			t.Errorf("%v: the end point is %x, want %x", algorithm, got, want)
		}
	}
	for _, weak := range []x509.SignatureAlgorithm{x509.MD5WithRSA, x509.SHA1WithRSA, x509.ECDSAWithSHA1} {
		sum := sha256.Sum256([]byte("der"))
		if got := scram.EndPoint(&x509.Certificate{SignatureAlgorithm: weak, Raw: []byte("der")}); string(got) != string(sum[:]) {
			t.Errorf("%v: the end point is %x, want %x", weak, got, sum)
		}
	}
}

// side is how one end sees channel binding.
type side struct {
	endPoint string // empty for none
	plus     bool   // it offers, or has chosen, channel binding
}

// bound runs a login between a client and a server.
func bound(client, server side) error {
	verifier, err := scram.Derive("secret", []byte("0123456789abcdef"), 64)
	if err != nil {
		return err
	}
	c, s := scram.NewClient("secret"), scram.NewServer(verifier)
	if client.endPoint != "" {
		c.Bind([]byte(client.endPoint), client.plus)
	}
	if server.endPoint != "" {
		s.Bind([]byte(server.endPoint), client.plus)
	}
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

func TestChannelBinding(t *testing.T) {
	for name, c := range map[string]struct {
		client, server side
		want           error
	}{
		"both bind to one certificate":         {side{"a", true}, side{"a", true}, nil},
		"to two certificates":                  {side{"a", true}, side{"b", true}, scram.ErrBinding},
		"the client cannot":                    {side{}, side{"a", true}, nil},
		"the server cannot":                    {side{"a", false}, side{}, nil},
		"the offer was taken away":             {side{"a", false}, side{"a", true}, scram.ErrBinding},
		"the client binds though it is not to": {side{"a", true}, side{}, scram.ErrMalformed},
	} {
		if err := bound(c.client, c.server); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
}

func TestChannelBindingMessagesThatAreNone(t *testing.T) {
	v := derive(t, "x")
	for _, c := range []struct {
		first string
		plus  bool
	}{
		{"n,,n=,r=abc", true}, {"y,,n=,r=abc", true}, {"p=tls-unique,,n=,r=abc", true}, {"p=,,n=,r=abc", true}, {"p,,n=,r=abc", true},
		{"p=tls-server-end-point,,n=,r=abc", false},
	} {
		s := scram.NewServer(v)
		s.Bind([]byte("a"), c.plus)
		if _, err := s.First([]byte(c.first)); !errors.Is(err, scram.ErrMalformed) {
			t.Errorf("%q with the mechanism chosen %v: %v", c.first, c.plus, err)
		}
	}
}

func TestKeysFromALoginAreGoodForAnother(t *testing.T) {
	verifier := derive(t, "secret")
	c, s := scram.NewClient("secret"), scram.NewServer(derive(t, "other"), verifier)
	if s.Keys() != nil {
		t.Error("there are keys before the login")
	}
	keys := keysOf(t, c, s)
	if keys.Verifier != verifier {
		t.Error("the keys are of another verifier than the client's")
	}
	again := func(to *scram.Verifier) error {
		c, s := scram.NewClientFromKeys(keys), scram.NewServer(to)
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
	if err := again(verifier); err != nil {
		t.Errorf("a server with the same verifier: %v", err)
	}
	other, err := scram.Derive("secret", []byte("another salt 123"), 64)
	if err != nil {
		t.Fatal(err)
	}
	if err := again(other); !errors.Is(err, scram.ErrOtherVerifier) {
		t.Errorf("a server with another: %v", err)
	}
	if err := again(derive(t, "other")); !errors.Is(err, scram.ErrPassword) {
		t.Errorf("a server with that of another password and the same salt: %v", err)
	}
}

func keysOf(t *testing.T, c *scram.Client, s *scram.Server) *scram.Keys {
	t.Helper()
	first, err := s.First(c.First())
	if err != nil {
		t.Fatal(err)
	}
	final, err := c.Final(first)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Final(final); err != nil {
		t.Fatal(err)
	}
	return s.Keys()
}

// FuzzBoundServer has a client that has chosen channel binding and knows neither the
// password nor the certificate.
func FuzzBoundServer(f *testing.F) {
	v := derive(f, "x")
	f.Add([]byte("p=tls-server-end-point,,n=,r=abc"), []byte("c="+base64.StdEncoding.EncodeToString([]byte("p=tls-server-end-point,,data"))+",r=abc,p=AAAA"), true)
	f.Add([]byte("y,,n=,r=abc"), []byte("c=eSws,r=abc,p=AAAA"), false)
	f.Fuzz(func(t *testing.T, first, final []byte, plus bool) {
		s := scram.NewServer(v)
		s.Bind([]byte("data"), plus)
		if _, err := s.First(first); err != nil {
			return
		}
		if strings.HasPrefix(string(first), "y,") || plus != strings.HasPrefix(string(first), "p=tls-server-end-point,") {
			t.Fatalf("First(%q) with the mechanism chosen %v is content", first, plus)
		}
		if _, err := s.Final(final); err == nil || s.Keys() != nil {
			t.Fatal("somebody got in without the password")
		}
	})
}
