package scram

import (
	"crypto/hmac"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
)

// ErrPassword says that the client does not know the password.
var ErrPassword = errors.New("the password is wrong")

// Server is the login of one client to us. First, then Final.
type Server struct {
	verifiers []*Verifier
	gs2       string // header of the client's first message
	bare      string // that message without it
	first     string // our first message
	nonce     string
}

// NewServer starts a login against verifiers that all have the same salt and
// iteration count; the client may know the password of any of them.
func NewServer(verifiers ...*Verifier) *Server { return &Server{verifiers: verifiers} }

// First takes the client-first-message and returns the server-first-message.
func (s *Server) First(message []byte) ([]byte, error) {
	m := string(message)
	flag, rest, ok := strings.Cut(m, ",")
	if !ok {
		return nil, malformed("no channel binding flag")
	}
	switch {
	case flag == "n", flag == "y":
	case strings.HasPrefix(flag, "p="):
		return nil, malformed("the client requires channel binding, which was not offered")
	default:
		return nil, malformed("channel binding flag %q", clip(flag))
	}
	authzid, bare, ok := strings.Cut(rest, ",")
	if !ok {
		return nil, malformed("no authorization identity")
	}
	if authzid != "" {
		return nil, malformed("an authorization identity is not supported")
	}
	if strings.HasPrefix(bare, "m=") {
		return nil, malformed("a mandatory extension is not supported")
	}
	// PostgreSQL ignores the user name here: the StartupMessage has it.
	_, rest, err := attribute(bare, 'n')
	if err != nil {
		return nil, err
	}
	nonce, _, err := attribute(rest, 'r')
	if err != nil {
		return nil, err
	}
	if err := checkNonce(nonce); err != nil {
		return nil, err
	}
	v := s.verifiers[0]
	s.gs2, s.bare, s.nonce = flag+","+authzid+",", bare, nonce+newNonce()
	s.first = fmt.Sprintf("r=%s,s=%s,i=%d", s.nonce, base64.StdEncoding.EncodeToString(v.Salt), v.Iterations)
	return []byte(s.first), nil
}

// Final takes the client-final-message and returns the server-final-message, or
// ErrPassword.
func (s *Server) Final(message []byte) ([]byte, error) {
	m := string(message)
	binding, rest, err := attribute(m, 'c')
	if err != nil {
		return nil, err
	}
	if want := base64.StdEncoding.EncodeToString([]byte(s.gs2)); binding != want {
		return nil, malformed("the channel binding data do not match the flag")
	}
	nonce, rest, err := attribute(rest, 'r')
	if err != nil {
		return nil, err
	}
	if nonce != s.nonce {
		return nil, malformed("the nonce is not the one given")
	}
	i := strings.LastIndex(","+rest, ",p=")
	if i < 0 {
		return nil, malformed("the proof is missing")
	}
	proof, err := base64.StdEncoding.DecodeString(rest[i+2:])
	if err != nil || len(proof) != keySize {
		return nil, malformed("the proof is not 32 bytes in base64")
	}
	withoutProof := m[:strings.LastIndex(m, ",p=")]
	auth := s.bare + "," + s.first + "," + withoutProof
	for _, v := range s.verifiers {
		if v.proves(auth, proof) {
			return []byte("v=" + base64.StdEncoding.EncodeToString(mac(v.ServerKey, auth))), nil
		}
	}
	return nil, ErrPassword
}

// proves reports whether a proof was made by somebody who knows the password.
func (v *Verifier) proves(auth string, proof []byte) bool {
	key := mac(v.StoredKey, auth)
	subtle.XORBytes(key, key, proof)
	return hmac.Equal(hash(key), v.StoredKey)
}

func clip(s string) string {
	if len(s) > 32 {
		return s[:32] + "…"
	}
	return s
}
