package secrets

import (
	"encoding/hex"
	"net/url"
	"strings"
	"testing"
	"time"
)

// TestSignaturesThatAWSPublishes has the examples of AWS's documentation: how a key is derived
// (General Reference, Signature Version 4) and a presigned address (S3 API Reference,
// authenticating requests by query parameters).
func TestSignaturesThatAWSPublishes(t *testing.T) {
	key := hex.EncodeToString(signingKey("wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY", "20120215", "us-east-1", "iam"))
	if want := "f4780e2d9f65fa895f9c67b32ce1baf0b0d8a43505a000a1a9e090d414db404d"; key != want {
		t.Errorf("the key is %s, want %s", key, want)
	}
	got := presigning{
		host: "examplebucket.s3.amazonaws.com", path: "/test.txt", service: "s3", region: "us-east-1", bodyHash: "UNSIGNED-PAYLOAD",
		expires: 24 * time.Hour, at: time.Date(2013, 5, 24, 0, 0, 0, 0, time.UTC),
	}.sign(awsKeys{id: "AKIAIOSFODNN7EXAMPLE", secret: "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"})
	const want = "X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential=AKIAIOSFODNN7EXAMPLE%2F20130524%2Fus-east-1%2Fs3%2Faws4_request&X-Amz-Date=20130524T000000Z" +
		"&X-Amz-Expires=86400&X-Amz-SignedHeaders=host&X-Amz-Signature=aeeed9bbccd4d02ee5c0109b86d86835f995330da4c265957d157751f604d404"
	if got != want {
		t.Errorf("the query is\n%s, want\n%s", got, want)
	}
}

// TestSignaturesAreThoseOfTheSDK compares with what AWS's SDK for Go, v4.Signer.PresignHTTP, makes
// of the same.
func TestSignaturesAreThoseOfTheSDK(t *testing.T) {
	for _, c := range []struct {
		host, service, region, session string
		query                          url.Values
		expires                        time.Duration
		want                           string
	}{
		{"db.abc123.us-east-1.rds.amazonaws.com:5432", "rds-db", "us-east-1", "", url.Values{"Action": {"connect"}, "DBUser": {"app"}}, tokenLife,
			"Action=connect&DBUser=app&X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential=AKID%2F20260203%2Fus-east-1%2Frds-db%2Faws4_request&X-Amz-Date=20260203T040506Z&X-Amz-Expires=900&X-Amz-SignedHeaders=host&X-Amz-Signature=6e121e052da637bf10a959a7e5dc8ffb7d28c7b2e4a9dc34f58e7c3cd60f8ab9"},
		{"db.abc123.cn-north-1.rds.amazonaws.com.cn:6000", "rds-db", "cn-north-1", "a/b+c==", url.Values{"Action": {"connect"}, "DBUser": {"a b/c@d~e*"}}, tokenLife,
			"Action=connect&DBUser=a%20b%2Fc%40d~e%2A&X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential=AKID%2F20260203%2Fcn-north-1%2Frds-db%2Faws4_request&X-Amz-Date=20260203T040506Z&X-Amz-Expires=900&X-Amz-Security-Token=a%2Fb%2Bc%3D%3D&X-Amz-SignedHeaders=host&X-Amz-Signature=74e31c4fe23c2a77ea105b2895517e3a80b931a56ffeb0cae66408d005ed829c"},
		{"sts.us-east-1.amazonaws.com", "sts", "us-east-1", "tok", url.Values{"Action": {"AssumeRole"}, "Version": {stsVersion}, "RoleArn": {"arn:aws:iam::123456789012:role/r"}, "RoleSessionName": {sessionName}}, time.Minute,
			"Action=AssumeRole&RoleArn=arn%3Aaws%3Aiam%3A%3A123456789012%3Arole%2Fr&RoleSessionName=pgebb&Version=2011-06-15&X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential=AKID%2F20260203%2Fus-east-1%2Fsts%2Faws4_request&X-Amz-Date=20260203T040506Z&X-Amz-Expires=60&X-Amz-Security-Token=tok&X-Amz-SignedHeaders=host&X-Amz-Signature=6067fbb712b4d2e4d99d7fdf848cf8a7e91385f2c17df88660f054f92e0dc744"},
	} {
		got := presigning{
			host: c.host, path: "/", query: c.query, service: c.service, region: c.region, bodyHash: emptyBody, expires: c.expires,
			at: time.Date(2026, 2, 3, 4, 5, 6, 0, time.UTC),
		}.sign(awsKeys{id: "AKID", secret: "SECRET", session: c.session})
		if got != c.want {
			t.Errorf("%s: the query is\n%s, want\n%s", c.host, got, c.want)
		}
	}
}

// TestATokenOfRDS is the same as a whole.
func TestATokenOfRDS(t *testing.T) {
	r := newRig(t, map[string]string{"AWS_ACCESS_KEY_ID": "AKID", "AWS_SECRET_ACCESS_KEY": "SECRET"})
	s := r.mustGet(rdsUser())
	if s.User != "" || !strings.HasPrefix(s.Password, "db.abc123.us-east-1.rds.amazonaws.com:5432/?Action=connect&DBUser=app&") ||
		!strings.HasSuffix(s.Password, "6e121e052da637bf10a959a7e5dc8ffb7d28c7b2e4a9dc34f58e7c3cd60f8ab9") {
		t.Errorf("the token is %+v", s)
	}
	r.pass(tokenLife - tokenReserve - time.Second)
	if again := r.mustGet(rdsUser()); again != s {
		t.Errorf("long before its end the token is another one: %+v", again)
	}
	r.pass(time.Second)
	if again := r.mustGet(rdsUser()); again.Password == s.Password {
		t.Error("the token is still the same shortly before its end")
	}
	other := rdsUser()
	other.User = "other"
	if o := r.mustGet(other); !strings.Contains(o.Password, "DBUser=other") {
		t.Errorf("the token of another user is %+v", o)
	}
}

func TestTheRegionOfADatabase(t *testing.T) {
	for _, c := range []struct{ host, configured, env, want string }{
		{"db.abc.eu-west-1.rds.amazonaws.com", "", "us-east-1", "eu-west-1"},
		{"DB.proxy-abc.cn-north-1.RDS.amazonaws.com.cn.", "", "", "cn-north-1"},
		{"db.abc.eu-west-1.rds.amazonaws.com", "us-west-2", "", "us-west-2"},
		{"db.internal", "", "us-east-1", "us-east-1"},
		{"eu-west-1.rds.example.com", "", "", ""},
		{"rds.amazonaws.com", "", "", ""},
		{"10.0.0.1", "", "", ""},
	} {
		r := newRig(t, map[string]string{"AWS_REGION": c.env})
		w := rdsUser()
		w.Host, w.Region = c.host, c.configured
		if got, err := r.regionOf(w); got != c.want || (err == nil) != (c.want != "") {
			t.Errorf("%+v: %q, %v", c, got, err)
		}
	}
	r := newRig(t, map[string]string{"AWS_DEFAULT_REGION": "x"})
	if got, _ := r.regionOf(Want{Host: "h"}); got != "x" {
		t.Errorf("AWS_DEFAULT_REGION gives %q", got)
	}
}
