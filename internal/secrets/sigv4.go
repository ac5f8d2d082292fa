package secrets

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

// emptyBody is the hash of a body that there is not.
const emptyBody = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"

// presigning is what is signed by AWS Signature Version 4 into the query of an address.
type presigning struct {
	host, path      string // with the port, if that is not the scheme's
	query           url.Values
	service, region string
	bodyHash        string
	expires         time.Duration
	at              time.Time
}

// sign returns the query with the signature.
func (p presigning) sign(k awsKeys) string {
	at := p.at.UTC().Format("20060102T150405Z")
	day := at[:8]
	scope := day + "/" + p.region + "/" + p.service + "/aws4_request"
	q := url.Values{
		"X-Amz-Algorithm":     {"AWS4-HMAC-SHA256"},
		"X-Amz-Credential":    {k.id + "/" + scope},
		"X-Amz-Date":          {at},
		"X-Amz-Expires":       {strconv.Itoa(int(p.expires.Seconds()))},
		"X-Amz-SignedHeaders": {"host"},
	}
	if k.session != "" {
		q.Set("X-Amz-Security-Token", k.session)
	}
	for name, values := range p.query {
		q[name] = values
	}
	canonical := canonicalQuery(q)
	request := strings.Join([]string{"GET", p.path, canonical, "host:" + p.host + "\n", "host", p.bodyHash}, "\n")
	hash := sha256.Sum256([]byte(request))
	toSign := "AWS4-HMAC-SHA256\n" + at + "\n" + scope + "\n" + hex.EncodeToString(hash[:])
	signature := mac(signingKey(k.secret, day, p.region, p.service), toSign)
	return canonical + "&X-Amz-Signature=" + hex.EncodeToString(signature)
}

// signingKey is derived from a secret for one day, region and service.
func signingKey(secret, day, region, service string) []byte {
	key := []byte("AWS4" + secret)
	for _, part := range []string{day, region, service, "aws4_request"} {
		key = mac(key, part)
	}
	return key
}

func mac(key []byte, text string) []byte {
	h := hmac.New(sha256.New, key)
	h.Write([]byte(text))
	return h.Sum(nil)
}

// canonicalQuery is a query in the order of its names, in which all but letters, digits and
// -._~ is encoded.
func canonicalQuery(q url.Values) string {
	var pairs []string
	for name, values := range q {
		for _, v := range values {
			pairs = append(pairs, escape(name)+"="+escape(v))
		}
	}
	slices.Sort(pairs)
	return strings.Join(pairs, "&")
}

// escape differs from url.QueryEscape in the space only.
func escape(s string) string { return strings.ReplaceAll(url.QueryEscape(s), "+", "%20") }
