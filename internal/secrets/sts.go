package secrets

import (
	"context"
	"encoding/xml"
	"fmt"
	"net/url"
	"strings"
	"time"
)

// This file is AWS's service for temporary keys.

const (
	stsVersion  = "2011-06-15"
	sessionName = "pgebb"
)

// stsAnswer has what either action answers with.
type stsAnswer struct {
	Role     stsKeys `xml:"AssumeRoleResult>Credentials"`
	Identity stsKeys `xml:"AssumeRoleWithWebIdentityResult>Credentials"`
}

type stsKeys struct {
	AccessKeyID     string `xml:"AccessKeyId"`
	SecretAccessKey string
	SessionToken    string
	Expiration      time.Time
}

// sts is where the service is.
func (k *Keeper) sts(region string) string {
	for _, name := range []string{"AWS_ENDPOINT_URL_STS", "AWS_ENDPOINT_URL"} {
		if address := k.env(name); address != "" {
			return strings.TrimSuffix(address, "/")
		}
	}
	if strings.HasPrefix(region, "cn-") {
		return "https://sts." + region + ".amazonaws.com.cn"
	}
	return "https://sts." + region + ".amazonaws.com"
}

// ownRegion is where pgebb is, if that is known.
func (k *Keeper) ownRegion(otherwise string) string {
	for _, name := range []string{"AWS_REGION", "AWS_DEFAULT_REGION"} {
		if region := k.env(name); region != "" {
			return region
		}
	}
	return otherwise
}

// webIdentity gets keys for the token of a pod's service account.
func (k *Keeper) webIdentity(ctx context.Context, file, region string) (awsKeys, error) {
	role := k.env("AWS_ROLE_ARN")
	if role == "" {
		return awsKeys{}, fmt.Errorf("%w: AWS_WEB_IDENTITY_TOKEN_FILE needs AWS_ROLE_ARN", ErrRefused)
	}
	token, err := readSecret(file)
	if err != nil {
		return awsKeys{}, err
	}
	name := k.env("AWS_ROLE_SESSION_NAME")
	if name == "" {
		name = sessionName
	}
	return k.askSTS(ctx, call{
		method: "POST", url: k.sts(k.ownRegion(region)) + "/", header: formHeader,
		body: form("Action", "AssumeRoleWithWebIdentity", "Version", stsVersion, "RoleArn", role, "RoleSessionName", name, "WebIdentityToken", token),
	})
}

// assumeRole gets keys of a role for the keys that there are.
func (k *Keeper) assumeRole(ctx context.Context, r awsRole) (awsKeys, error) {
	keys, err := k.awsKeys(ctx, awsRole{region: r.region})
	if err != nil {
		return awsKeys{}, err
	}
	region := k.ownRegion(r.region)
	address := k.sts(region)
	u, err := url.Parse(address)
	if err != nil {
		return awsKeys{}, fmt.Errorf("%w: AWS_ENDPOINT_URL is no address", ErrRefused)
	}
	query := presigning{
		host: u.Host, path: "/", service: "sts", region: region, bodyHash: emptyBody, expires: time.Minute, at: k.now(),
		query: url.Values{"Action": {"AssumeRole"}, "Version": {stsVersion}, "RoleArn": {r.arn}, "RoleSessionName": {sessionName}},
	}.sign(keys)
	return k.askSTS(ctx, call{method: "GET", url: address + "/?" + query})
}

func (k *Keeper) askSTS(ctx context.Context, c call) (awsKeys, error) {
	c.client, c.explanations = &k.http.proxied, stsSays
	body, err := c.do(ctx)
	if err != nil {
		return awsKeys{}, err
	}
	var a stsAnswer
	if xml.Unmarshal(body, &a) != nil {
		return awsKeys{}, fmt.Errorf("the answer of %s is no XML", withoutQuery(c.url))
	}
	keys := a.Role
	if keys.AccessKeyID == "" {
		keys = a.Identity
	}
	if keys.AccessKeyID == "" || keys.SecretAccessKey == "" || keys.Expiration.IsZero() {
		return awsKeys{}, fmt.Errorf("the answer of %s has no keys", withoutQuery(c.url))
	}
	return awsKeys{keys.AccessKeyID, keys.SecretAccessKey, keys.SessionToken, keys.Expiration}, nil
}

// stsSays is what is in an error of the service.
func stsSays(answer []byte) string {
	var e struct {
		Code    string `xml:"Error>Code"`
		Message string `xml:"Error>Message"`
	}
	if xml.Unmarshal(answer, &e) != nil {
		return ""
	}
	return e.Code + ": " + e.Message
}
