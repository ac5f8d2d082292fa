package scram

import (
	"bytes"
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
	password  string
	keys      *Keys  // in place of the password; nil if there is that
	gs2       string // header of the first message
	endPoint  []byte // channel binding data, nil without
	nonce     string
	bare      string
	auth      string
	clientKey []byte
	serverKey []byte
}

// NewClient starts a login with a password.
func NewClient(password string) *Client {
	return &Client{password: password, gs2: "n,,", nonce: newNonce()}
}

// NewClientFromKeys starts a login with the keys from the login of somebody else. They
// are good for a server that keeps the same verifier.
func NewClientFromKeys(keys *Keys) *Client {
	return &Client{keys: keys, gs2: "n,,", nonce: newNonce()}
}

// Bind binds the login to the server's certificate, with the data of [EndPoint]; offered
// says whether the server has offered [MechanismPlus]. If it has not, it is told that it
// could have, so that it notices if somebody has taken the offer away. It comes before
// First, and is left out without TLS, or where there is no channel binding.
func (c *Client) Bind(endPoint []byte, offered bool) {
	c.gs2 = "y,,"
	if offered {
		c.gs2, c.endPoint = "p="+bindingType+",,", endPoint
	}
}

// First returns the client-first-message. PostgreSQL takes the user name from the
// StartupMessage, so it is left empty here, as libpq does.
func (c *Client) First() []byte {
	c.bare = "n=,r=" + c.nonce
	return []byte(c.gs2 + c.bare)
}

// Final takes the server-first-message and returns the client-final-message. A server
// gets one proof, of the salt and the iteration count that it has named first.
func (c *Client) Final(message []byte) ([]byte, error) {
	if c.clientKey != nil {
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
	if err := c.derive(salt, iterations); err != nil {
		return nil, err
	}
	withoutProof := "c=" + bindingAttribute(c.gs2, c.endPoint) + ",r=" + nonce
	c.auth = c.bare + "," + m + "," + withoutProof
	proof := mac(hash(c.clientKey), c.auth)
	subtle.XORBytes(proof, proof, c.clientKey)
	return fmt.Appendf(nil, "%s,p=%s", withoutProof, base64.StdEncoding.EncodeToString(proof)), nil
}

// ErrOtherVerifier says that the server keeps another verifier than the one that the keys
// are of.
var ErrOtherVerifier = errors.New("the server has another SCRAM verifier for the user than the one that its clients log in with: the salt or the iteration count differs")

// derive makes the keys, of the password or of those that there are.
func (c *Client) derive(salt []byte, iterations int) error {
	if c.keys != nil {
		v := c.keys.Verifier
		if !bytes.Equal(salt, v.Salt) || iterations != v.Iterations {
			return ErrOtherVerifier
		}
		c.clientKey, c.serverKey = c.keys.ClientKey, v.ServerKey
		return nil
	}
	salted, err := saltPassword(c.password, salt, iterations)
	if err != nil {
		return err
	}
	c.clientKey, c.serverKey = mac(salted, "Client Key"), mac(salted, "Server Key")
	return nil
}

// ErrServer says that the server does not know the password either.
var ErrServer = errors.New("the server did not prove that it knows the password")

// Verify takes the server-final-message.
func (c *Client) Verify(message []byte) error {
	if c.clientKey == nil {
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
	if !hmac.Equal(signature, mac(c.serverKey, c.auth)) {
		return ErrServer
	}
	return nil
}
