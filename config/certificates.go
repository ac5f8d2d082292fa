package config

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"time"
)

// ClientTLS is what the encryption of clients' connections is made of.
type ClientTLS struct {
	Certificate *tls.Certificate // that clients are shown; nil if there is no encryption
	Authorities *x509.CertPool   // that the certificates of clients come from; nil if none are asked for
	Required    bool             // clients without encryption are refused
}

// ServerTLS is what the encryption of connections to servers is made of.
type ServerTLS struct {
	Verify      TLSVerify
	Authorities *x509.CertPool   // nil for those of the system
	Certificate *tls.Certificate // that servers are shown; nil if none
}

// TLSVerify says how much is demanded of the encryption of a server's connection.
type TLSVerify uint8

// What can be demanded.
const (
	VerifyDisabled TLSVerify = iota // no encryption
	VerifyPrefer                    // if the server has it, with whatever certificate
	VerifyCA                        // a certificate of an authority
	VerifyFull                      // and for the host that was connected to
)

var tlsVerifies = []string{"disabled", "prefer", "verify_ca", "verify_full"}

func (v TLSVerify) String() string { return tlsVerifies[v] }

// MarshalText implements encoding.TextMarshaler.
func (v TLSVerify) MarshalText() ([]byte, error) { return []byte(v.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (v *TLSVerify) UnmarshalText(b []byte) error { return unmarshalEnum(v, b, tlsVerifies) }

// certificates reads the files that [general] names.
func (d *decoder) certificates(c *Config, raw rawTable) {
	g := &c.General
	c.ClientTLS = ClientTLS{
		Certificate: d.pair(raw, "tls_certificate", g.TLSCertificate, "tls_private_key", g.TLSPrivateKey),
		Authorities: d.authorities(raw, "tls_client_ca_certificate", g.TLSClientCACertificate),
		Required:    g.TLSClientRequired,
	}
	c.ServerTLS = ServerTLS{
		Verify:      g.TLSVerify,
		Certificate: d.pair(raw, "tls_server_certificate", g.TLSServerCertificate, "tls_server_private_key", g.TLSServerPrivateKey),
		Authorities: d.authorities(raw, "tls_server_ca_certificate", g.TLSServerCACertificate),
	}
	for key, set := range map[string]bool{"tls_client_required": g.TLSClientRequired, "tls_client_ca_certificate": g.TLSClientCACertificate != ""} {
		if set && g.TLSCertificate == "" {
			d.problem(placeOfValue(raw, key), "general."+key, "", "this needs tls_certificate and tls_private_key")
		}
	}
	if g.TLSVerify != VerifyDisabled {
		return
	}
	for key, path := range map[string]string{"tls_server_certificate": g.TLSServerCertificate, "tls_server_ca_certificate": g.TLSServerCACertificate} {
		if path != "" {
			d.warn(placeOfValue(raw, key), "general."+key, "this is not used, since tls_verify is disabled")
		}
	}
}

// pair reads a certificate and its key; nil if neither is named, or there is a problem.
func (d *decoder) pair(raw rawTable, certKey, certPath, keyKey, keyPath string) *tls.Certificate {
	switch {
	case certPath == "" && keyPath == "":
		return nil
	case keyPath == "":
		d.problem(placeOfValue(raw, certKey), "general."+certKey, "", "this needs %s", keyKey)
		return nil
	case certPath == "":
		d.problem(placeOfValue(raw, keyKey), "general."+keyKey, "", "this needs %s", certKey)
		return nil
	}
	certPEM, certErr := readPEM(certPath, "CERTIFICATE")
	if certErr != nil {
		d.problem(placeOfValue(raw, certKey), "general."+certKey, "", "%v", certErr)
	}
	keyPEM, keyErr := readPEM(keyPath, "PRIVATE KEY")
	if keyErr != nil {
		d.problem(placeOfValue(raw, keyKey), "general."+keyKey, "", "%v", keyErr)
	}
	if certErr != nil || keyErr != nil {
		return nil
	}
	cert, err := tls.X509KeyPair(certPEM, keyPEM)
	if err != nil {
		d.problem(placeOfValue(raw, certKey), "general."+certKey, "", "%s and %s cannot be used together: %s", certPath, keyPath, strings.TrimPrefix(err.Error(), "tls: "))
		return nil
	}
	d.checkAge(placeOfValue(raw, certKey), "general."+certKey, certPath, cert.Leaf)
	return &cert
}

// authorities reads a file of certificates; nil if none is named, or there is a problem.
func (d *decoder) authorities(raw rawTable, key, path string) *x509.CertPool {
	if path == "" {
		return nil
	}
	at := placeOfValue(raw, key)
	b, err := readPEM(path, "CERTIFICATE")
	if err != nil {
		d.problem(at, "general."+key, "", "%v", err)
		return nil
	}
	pool := x509.NewCertPool()
	for block, rest := pem.Decode(b); block != nil; block, rest = pem.Decode(rest) {
		if block.Type != "CERTIFICATE" {
			continue
		}
		cert, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			d.problem(at, "general."+key, "", "%s: %v", path, err)
			return nil
		}
		d.checkAge(at, "general."+key, path, cert)
		pool.AddCert(cert)
	}
	return pool
}

// checkAge warns of a certificate that nobody accepts at present.
func (d *decoder) checkAge(at place, key, path string, cert *x509.Certificate) {
	switch now := time.Now(); {
	case now.After(cert.NotAfter):
		d.warn(at, key, "%s has expired at %s", path, cert.NotAfter.Format(time.RFC3339))
	case now.Before(cert.NotBefore):
		d.warn(at, key, "%s is not valid before %s", path, cert.NotBefore.Format(time.RFC3339))
	}
}

// readPEM reads a file that has blocks whose type ends with what is wanted.
func readPEM(path, wanted string) ([]byte, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		var pathErr *fs.PathError
		if errors.As(err, &pathErr) {
			return nil, fmt.Errorf("%s cannot be read: %w", path, pathErr.Err)
		}
		return nil, fmt.Errorf("%s cannot be read: %w", path, err)
	}
	var other string
	for block, rest := pem.Decode(b); block != nil; block, rest = pem.Decode(rest) {
		if block.Type == "ENCRYPTED PRIVATE KEY" || block.Headers["DEK-Info"] != "" {
			return nil, fmt.Errorf("%s is protected by a passphrase, which nobody could enter: remove it (openssl pkey)", path)
		}
		if strings.HasSuffix(block.Type, wanted) {
			return b, nil
		}
		other = block.Type
	}
	if other != "" {
		return nil, fmt.Errorf("%s has a %s and no %s", path, other, wanted)
	}
	return nil, fmt.Errorf("%s is not in PEM format: it has no BEGIN %s", path, wanted)
}

// placeOfValue is where a key of [general] has its value from.
func placeOfValue(raw rawTable, key string) place {
	if _, ok := raw.values[key]; !ok {
		return place{file: "environment"}
	}
	return raw.placeOf(key)
}
