package backend

import (
	"crypto/x509"
	"fmt"
	"net"
	"strings"
)

// verifyHost compares a server's certificate with the host that was connected to. As with
// libpq, the common name counts if the certificate has no alternative name of the
// host's kind; crypto/x509 has given that up, but private authorities have not.
func verifyHost(leaf *x509.Certificate, host string) error {
	isIP := net.ParseIP(host) != nil
	if isIP && len(leaf.IPAddresses) > 0 || !isIP && len(leaf.DNSNames) > 0 {
		return leaf.VerifyHostname(host)
	}
	name := leaf.Subject.CommonName
	switch {
	case name == "":
		return fmt.Errorf("it is for no host, and this is %s", host)
	case matches(name, host, isIP):
		return nil
	}
	return fmt.Errorf("it is for %q and not for %s", name, host)
}

// matches compares a name with a host. As with libpq, the first part of a name may be a
// star, which stands for one part.
func matches(name, host string, isIP bool) bool {
	if strings.EqualFold(name, host) {
		return true
	}
	rest, wild := strings.CutPrefix(name, "*.")
	_, domain, found := strings.Cut(host, ".")
	return wild && found && !isIP && host[0] != '.' && strings.EqualFold(rest, domain)
}
