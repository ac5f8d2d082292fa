// Package scram is SCRAM-SHA-256 (RFC 5802, RFC 7677) as PostgreSQL speaks it, both
// sides of it.
//
// A [Verifier] is what a server keeps instead of a password. [Server] is one login
// of a client to us, [Client] one of ours to a server. Neither does I/O: they take
// and give the payloads of SASL messages. Over TLS either can be bound to the server's
// certificate, see [EndPoint].
//
// The caveat that bites: the work is in [Derive], which takes milliseconds by
// design. Derive a verifier once per password, not once per login.
package scram

import (
	"crypto/hmac"
	"crypto/pbkdf2"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/xdg-go/stringprep"
)

// Mechanism is the name of the SASL mechanism, and MechanismPlus that of the one with
// channel binding.
const (
	Mechanism     = "SCRAM-SHA-256"
	MechanismPlus = "SCRAM-SHA-256-PLUS"
)

const (
	// Iterations is what PostgreSQL uses for new verifiers.
	Iterations = 4096
	// maxIterations bounds the work that a hostile server can ask for: about a
	// second.
	maxIterations = 5_000_000
	saltSize      = 16
	nonceSize     = 18
	keySize       = sha256.Size
	// maxNonce is the longest nonce in bytes that is accepted of a peer.
	maxNonce = 1024
)

// Verifier is what a server keeps of a password.
type Verifier struct {
	Iterations int
	Salt       []byte
	StoredKey  []byte
	ServerKey  []byte
}

// Keys are what somebody has who knows the password, of a verifier. Whoever has them can
// log in wherever that verifier is kept.
type Keys struct {
	ClientKey []byte
	Verifier  *Verifier
}

// prepare is SASLprep with PostgreSQL's exception: a password that is not valid
// for it is used as it is.
func prepare(password string) string {
	if p, err := stringprep.SASLprep.Prepare(password); err == nil {
		return p
	}
	return password
}

func mac(key []byte, text string) []byte {
	h := hmac.New(sha256.New, key)
	h.Write([]byte(text))
	return h.Sum(nil)
}

func hash(b []byte) []byte {
	sum := sha256.Sum256(b)
	return sum[:]
}

func saltPassword(password string, salt []byte, iterations int) ([]byte, error) {
	key, err := pbkdf2.Key(sha256.New, prepare(password), salt, iterations, keySize)
	if err != nil {
		return nil, fmt.Errorf("deriving a key from the password: %w", err)
	}
	return key, nil
}

// Derive makes the verifier of a password.
func Derive(password string, salt []byte, iterations int) (*Verifier, error) {
	salted, err := saltPassword(password, salt, iterations)
	if err != nil {
		return nil, err
	}
	return &Verifier{iterations, salt, hash(mac(salted, "Client Key")), mac(salted, "Server Key")}, nil
}

// NewSalt returns a random salt.
func NewSalt() []byte {
	salt := make([]byte, saltSize)
	_, _ = rand.Read(salt) // never fails
	return salt
}

// String is the verifier as PostgreSQL stores it in pg_authid.rolpassword.
func (v *Verifier) String() string {
	b64 := base64.StdEncoding.EncodeToString
	return fmt.Sprintf("%s$%d:%s$%s:%s", Mechanism, v.Iterations, b64(v.Salt), b64(v.StoredKey), b64(v.ServerKey))
}

// Parse reads a verifier as PostgreSQL stores it.
func Parse(s string) (*Verifier, error) {
	bad := func(what string) error { return fmt.Errorf("not a SCRAM-SHA-256 verifier: %s", what) }
	rest, ok := strings.CutPrefix(s, Mechanism+"$")
	if !ok {
		return nil, bad("it does not start with " + Mechanism + "$")
	}
	head, keys, ok := strings.Cut(rest, "$")
	if !ok {
		return nil, bad("the keys are missing")
	}
	iter, salt, ok1 := strings.Cut(head, ":")
	stored, server, ok2 := strings.Cut(keys, ":")
	if !ok1 || !ok2 {
		return nil, bad("a colon is missing")
	}
	v := &Verifier{}
	var err error
	if v.Iterations, err = strconv.Atoi(iter); err != nil || v.Iterations < 1 {
		return nil, bad("the iteration count is not a positive number")
	}
	if v.Salt, err = base64.StdEncoding.DecodeString(salt); err != nil || len(v.Salt) == 0 {
		return nil, bad("the salt is not base64")
	}
	if v.StoredKey, err = base64.StdEncoding.DecodeString(stored); err != nil || len(v.StoredKey) != keySize {
		return nil, bad("the stored key is not 32 bytes in base64")
	}
	if v.ServerKey, err = base64.StdEncoding.DecodeString(server); err != nil || len(v.ServerKey) != keySize {
		return nil, bad("the server key is not 32 bytes in base64")
	}
	return v, nil
}

func newNonce() string {
	b := make([]byte, nonceSize)
	_, _ = rand.Read(b) // never fails
	return base64.StdEncoding.EncodeToString(b)
}

// ErrMalformed is wrapped by what a peer gets wrong about the messages, as opposed
// to the password.
var ErrMalformed = errors.New("malformed SCRAM message")

func malformed(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrMalformed, fmt.Sprintf(format, args...))
}

// attribute takes "x=value" off the front of a comma-separated list.
func attribute(s string, name byte) (value, rest string, err error) {
	item, rest, _ := strings.Cut(s, ",")
	if len(item) < 2 || item[0] != name || item[1] != '=' {
		return "", "", malformed("attribute %q is missing", name)
	}
	return item[2:], rest, nil
}

// checkNonce refuses nonces that are empty, too long or not printable.
func checkNonce(s string) error {
	if s == "" || len(s) > maxNonce {
		return malformed("a nonce of %d bytes", len(s))
	}
	for i := range len(s) {
		if s[i] < 0x21 || s[i] > 0x7e {
			return malformed("a nonce with unprintable characters")
		}
	}
	return nil
}
