// Package testcert makes throwaway certificates for tests, benchmarks and the demo.
//
// An [Authority] is a certification authority in memory, and issues a [Certificate] for
// whoever is described by an [Options].
//
// It is no part of pgebb, and nothing that pgebb is made of imports it.
//
// The caveat that bites: every key is new, so that two runs have nothing in common, and
// those of RSA take a moment to make.
package testcert

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

// Authority issues certificates.
type Authority struct {
	Certificate
}

// Certificate is a certificate with its key.
type Certificate struct {
	Leaf    *x509.Certificate
	Key     crypto.Signer
	CertPEM []byte
	KeyPEM  []byte
}

// Options describe a certificate. The zero value is for nobody, and for everything.
type Options struct {
	CommonName string
	Names      []string // DNS names
	IPs        []string
	Algorithm  x509.SignatureAlgorithm // of the authority's signature, and with it the kind of its key; 0 for ECDSA with SHA-256
	Expired    bool
}

// New makes an authority that signs with an algorithm; 0 is ECDSA with SHA-256.
func New(algorithm x509.SignatureAlgorithm) (*Authority, error) {
	key, err := newKey(algorithm)
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "throwaway authority " + rand.Text()[:6]},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign, SignatureAlgorithm: algorithm,
	}
	c, err := sign(template, template, key, key)
	if err != nil {
		return nil, err
	}
	return &Authority{*c}, nil
}

// Issue makes a certificate.
func (a *Authority) Issue(o Options) (*Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("making a key: %w", err)
	}
	serial, err := rand.Int(rand.Reader, big.NewInt(1<<62))
	if err != nil {
		return nil, fmt.Errorf("making a serial number: %w", err)
	}
	template := &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: o.CommonName}, DNSNames: o.Names,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
		SignatureAlgorithm: o.Algorithm,
	}
	if o.Expired {
		template.NotBefore, template.NotAfter = time.Now().Add(-48*time.Hour), time.Now().Add(-24*time.Hour)
	}
	for _, ip := range o.IPs {
		template.IPAddresses = append(template.IPAddresses, net.ParseIP(ip))
	}
	return sign(template, a.Leaf, key, a.Key)
}

func newKey(algorithm x509.SignatureAlgorithm) (crypto.Signer, error) {
	switch algorithm {
	case x509.PureEd25519:
		_, key, err := ed25519.GenerateKey(rand.Reader)
		return key, err
	case x509.SHA256WithRSA, x509.SHA384WithRSA, x509.SHA512WithRSA, x509.SHA256WithRSAPSS, x509.SHA384WithRSAPSS, x509.SHA512WithRSAPSS:
		return rsa.GenerateKey(rand.Reader, 2048)
	case 0, x509.ECDSAWithSHA256, x509.ECDSAWithSHA384, x509.ECDSAWithSHA512:
		return ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	}
	return nil, fmt.Errorf("no key is made for %v", algorithm)
}

func sign(template, parent *x509.Certificate, key, signer crypto.Signer) (*Certificate, error) {
	der, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), signer)
	if err != nil {
		return nil, fmt.Errorf("making a certificate: %w", err)
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, fmt.Errorf("making a certificate: %w", err)
	}
	pkcs8, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, fmt.Errorf("making a key: %w", err)
	}
	return &Certificate{
		Leaf: leaf, Key: key,
		CertPEM: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		KeyPEM:  pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: pkcs8}),
	}, nil
}

// TLS is the certificate as crypto/tls wants it.
func (c *Certificate) TLS() tls.Certificate {
	return tls.Certificate{Certificate: [][]byte{c.Leaf.Raw}, PrivateKey: c.Key, Leaf: c.Leaf}
}

// Pool is a set with the certificate alone.
func (c *Certificate) Pool() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(c.Leaf)
	return pool
}

// Write writes name.crt and name.key into a folder; only the owner can read the key.
func (c *Certificate) Write(dir, name string) (cert, key string, err error) {
	cert, key = filepath.Join(dir, name+".crt"), filepath.Join(dir, name+".key")
	return cert, key, errors.Join(os.WriteFile(cert, c.CertPEM, 0o644), os.WriteFile(key, c.KeyPEM, 0o600))
}
