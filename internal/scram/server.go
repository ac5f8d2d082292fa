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
	endPoint  []byte // channel binding data; nil if binding is not offered
	plus      bool   // the client has chosen it
	keys      *Keys  // of the client, once it is in
	gs2       string // header of the client's first message
	bare      string // that message without it
	first     string // our first message
	nonce     string
}

// NewServer starts a login against verifiers that all have the same salt and
// iteration count; the client may know the password of any of them.
func NewServer(verifiers ...*Verifier) *Server { return &Server{verifiers: verifiers} }

// Bind offers channel binding with the data of [EndPoint]. plus says whether the client
// has chosen the mechanism that has it. It comes before First.
func (s *Server) Bind(endPoint []byte, plus bool) { s.endPoint, s.plus = endPoint, plus }

// checkFlag looks at whether the client means by its channel binding flag what it has
// said by its choice of the mechanism.
func (s *Server) checkFlag(flag string) error {
	kind, binds := strings.CutPrefix(flag, "p=")
	switch {
	case binds && !s.plus:
		return malformed("the client has chosen %s without channel binding, and sends channel binding data", Mechanism)
	case binds && kind != bindingType:
		return malformed("channel binding of type %q is not supported", clip(kind))
	case binds:
		return nil
	case s.plus && (flag == "n" || flag == "y"):
		return malformed("the client has chosen %s, and sends no channel binding data", MechanismPlus)
	case flag == "y" && s.endPoint != nil:
		// Somebody has taken the offer out of what the client was told.
		return fmt.Errorf("%w: the client thinks that it is not offered, and it is", ErrBinding)
	case flag != "n" && flag != "y":
		return malformed("channel binding flag %q", clip(flag))
	}
	return nil
}

// First takes the client-first-message and returns the server-first-message.
func (s *Server) First(message []byte) ([]byte, error) {
	m := string(message)
	flag, rest, ok := strings.Cut(m, ",")
	if !ok {
		return nil, malformed("no channel binding flag")
	}
	if err := s.checkFlag(flag); err != nil {
		return nil, err
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
	switch {
	case s.plus && binding != bindingAttribute(s.gs2, s.endPoint):
		return nil, fmt.Errorf("%w: the client sees another certificate", ErrBinding)
	case !s.plus && binding != bindingAttribute(s.gs2, nil):
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
		if key := v.clientKey(auth, proof); key != nil {
			s.keys = &Keys{key, v}
			return []byte("v=" + base64.StdEncoding.EncodeToString(mac(v.ServerKey, auth))), nil
		}
	}
	return nil, ErrPassword
}

// Keys are the client's, once Final has let it in.
func (s *Server) Keys() *Keys { return s.keys }

// clientKey is the key that a proof was made with, nil if not by somebody who knows the
// password.
func (v *Verifier) clientKey(auth string, proof []byte) []byte {
	key := mac(v.StoredKey, auth)
	subtle.XORBytes(key, key, proof)
	if !hmac.Equal(hash(key), v.StoredKey) {
		return nil
	}
	return key
}

func clip(s string) string {
	if len(s) > 32 {
		return s[:32] + "…"
	}
	return s
}
