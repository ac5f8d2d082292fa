package scram

import (
	"crypto"
	"crypto/x509"
	"encoding/base64"
	"errors"
)

// ErrBinding is wrapped when the two ends do not agree on channel binding: somebody may
// stand between them.
var ErrBinding = errors.New("channel binding")

// bindingType is the only type of channel binding that PostgreSQL has.
const bindingType = "tls-server-end-point"

// EndPoint is the channel binding data of type tls-server-end-point (RFC 5929, section
// 4.1): the server's certificate, hashed with the hash function of its signature, but
// with SHA-256 if that is MD5 or SHA-1. It is nil for a signature without a hash function
// of its own, such as Ed25519, with which there is no channel binding.
func EndPoint(cert *x509.Certificate) []byte {
	var h crypto.Hash
	switch cert.SignatureAlgorithm {
	case x509.MD5WithRSA, x509.SHA1WithRSA, x509.DSAWithSHA1, x509.ECDSAWithSHA1,
		x509.SHA256WithRSA, x509.DSAWithSHA256, x509.ECDSAWithSHA256, x509.SHA256WithRSAPSS:
		h = crypto.SHA256
	case x509.SHA384WithRSA, x509.ECDSAWithSHA384, x509.SHA384WithRSAPSS:
		h = crypto.SHA384
	case x509.SHA512WithRSA, x509.ECDSAWithSHA512, x509.SHA512WithRSAPSS:
		h = crypto.SHA512
	default:
		return nil
	}
	sum := h.New()
	sum.Write(cert.Raw)
	return sum.Sum(nil)
}

// bindingAttribute is the value of c= for a header and the data that it is for.
func bindingAttribute(gs2 string, data []byte) string {
	return base64.StdEncoding.EncodeToString(append([]byte(gs2), data...))
}
