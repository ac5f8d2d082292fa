package scram

import (
	"crypto/hmac"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// Client is one login of ours to a server: First, then Final, then Verify.
type Client struct {
	password string
	nonce    string
	bare     string
	auth     string
	salted   []byte
}

// NewClient starts a login.
func NewClient(password string) *Client {
	return &Client{password: password, nonce: newNonce()}
}

// First returns the client-first-message. PostgreSQL takes the user name from the
// StartupMessage, so it is left empty here, as libpq does.
func (c *Client) First() []byte {
	c.bare = "n=,r=" + c.nonce
	return []byte("n,," + c.bare)
}

// Final takes the server-first-message and returns the client-final-message. A server
// gets one proof, of the salt and the iteration count that it has named first.
func (c *Client) Final(message []byte) ([]byte, error) {
	if c.salted != nil {
		return nil, malformed("the server starts once more")
	}
	m := string(message)
	nonce, rest, err := attribute(m, 'r')
	if err != nil {
		return nil, err
	}
	if err := checkNonce(nonce); err != nil {
		return nil, err
	}
	if !strings.HasPrefix(nonce, c.nonce) || nonce == c.nonce {
		return nil, malformed("the server's nonce does not continue ours")
	}
	salt64, rest, err := attribute(rest, 's')
	if err != nil {
		return nil, err
	}
	salt, err := base64.StdEncoding.DecodeString(salt64)
	if err != nil || len(salt) == 0 {
		return nil, malformed("the salt is not base64")
	}
	count, _, err := attribute(rest, 'i')
	if err != nil {
		return nil, err
	}
	iterations, err := strconv.Atoi(count)
	if err != nil || iterations < 1 || iterations > maxIterations {
		return nil, malformed("an iteration count of %s (at most %d are accepted)", clip(count), maxIterations)
	}
	if c.salted, err = saltPassword(c.password, salt, iterations); err != nil {
		return nil, err
	}
	withoutProof := "c=biws,r=" + nonce // biws: base64 of "n,,"
	c.auth = c.bare + "," + m + "," + withoutProof
	clientKey := mac(c.salted, "Client Key")
	proof := mac(hash(clientKey), c.auth)
	subtle.XORBytes(proof, proof, clientKey)
	return fmt.Appendf(nil, "%s,p=%s", withoutProof, base64.StdEncoding.EncodeToString(proof)), nil
}

// ErrServer says that the server does not know the password either.
var ErrServer = errors.New("the server did not prove that it knows the password")

// Verify takes the server-final-message.
func (c *Client) Verify(message []byte) error {
	if c.salted == nil {
		// What a server without a key would sign without a message, everybody can compute.
		return malformed("the server ends before it has asked for a proof")
	}
	m := string(message)
	if reason, ok := strings.CutPrefix(m, "e="); ok {
		return fmt.Errorf("the server refuses: %s", clip(reason))
	}
	v, _, err := attribute(m, 'v')
	if err != nil {
		return err
	}
	signature, err := base64.StdEncoding.DecodeString(v)
	if err != nil {
		return malformed("the server's signature is not base64")
	}
	if !hmac.Equal(signature, mac(mac(c.salted, "Server Key"), c.auth)) {
		return ErrServer
	}
	return nil
}
