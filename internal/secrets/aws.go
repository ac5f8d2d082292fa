package secrets

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"
)

// This file is the chain in which AWS's own programs look for keys: the environment, a token
// of the pod's service account, a file, the container's endpoint, the machine's.

// awsKeys are what requests to AWS are signed with.
type awsKeys struct {
	id, secret, session string
	until               time.Time // zero for never
}

// awsRole is whose keys: those of a role, or without one what the chain has.
type awsRole struct{ arn, region string }

// keysReserve is left of the life of keys when they are replaced.
const keysReserve = 5 * time.Minute

// fileAge is how long keys of a file are used before it is read again.
const fileAge = 5 * time.Minute

// awsKeys returns keys, from what is kept if that will do.
func (k *Keeper) awsKeys(ctx context.Context, r awsRole) (awsKeys, error) {
	keys, stale, err := k.keys.get(ctx, r, func(ctx context.Context) (awsKeys, life, error) {
		keys, err := k.findKeys(ctx, r)
		if err != nil || keys.until.IsZero() {
			return keys, life{renew: k.now().Add(fileAge)}, err
		}
		now := k.now()
		if !keys.until.After(now) {
			return awsKeys{}, life{}, fmt.Errorf("the keys for AWS have expired at %s", keys.until.Format(time.RFC3339))
		}
		return keys, lasting(now, keys.until.Sub(now), keysReserve), nil
	})
	if stale != nil {
		k.log.Warn("keys for AWS could not be renewed; those there are go on to be used", "error", stale)
	}
	return keys, err
}

func (k *Keeper) findKeys(ctx context.Context, r awsRole) (awsKeys, error) {
	if r.arn != "" {
		return k.assumeRole(ctx, r)
	}
	if id, secret := k.env("AWS_ACCESS_KEY_ID"), k.env("AWS_SECRET_ACCESS_KEY"); id != "" && secret != "" {
		return awsKeys{id: id, secret: secret, session: k.env("AWS_SESSION_TOKEN")}, nil
	}
	if file := k.env("AWS_WEB_IDENTITY_TOKEN_FILE"); file != "" {
		return k.webIdentity(ctx, file, r.region)
	}
	if keys, err := k.profileKeys(); err != nil || keys.id != "" {
		return keys, err
	}
	if path := k.env("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI"); path != "" {
		return k.containerKeys(ctx, "http://169.254.170.2"+path)
	}
	if address := k.env("AWS_CONTAINER_CREDENTIALS_FULL_URI"); address != "" {
		if err := mayAsk(address); err != nil {
			return awsKeys{}, err
		}
		return k.containerKeys(ctx, address)
	}
	if strings.EqualFold(k.env("AWS_EC2_METADATA_DISABLED"), "true") {
		return awsKeys{}, fmt.Errorf("%w: there are no keys for AWS in the environment or in files, and AWS_EC2_METADATA_DISABLED is set", ErrRefused)
	}
	keys, err := k.machineKeys(ctx)
	if err != nil {
		return awsKeys{}, fmt.Errorf("there are no keys for AWS in the environment or in files, and the machine has none: %w", err)
	}
	return keys, nil
}

// profileKeys are those of a profile in the files of AWS's own programs; none if there are no
// files, or nothing in them.
func (k *Keeper) profileKeys() (awsKeys, error) {
	profile, named := k.env("AWS_PROFILE"), true
	if profile == "" {
		profile, named = "default", false
	}
	read := func(variable, name, section string) (map[string]string, error) {
		path := k.env(variable)
		if path == "" {
			if k.env("HOME") == "" {
				return nil, nil
			}
			path = k.env("HOME") + "/.aws/" + name
		}
		text, err := os.ReadFile(path)
		if errors.Is(err, os.ErrNotExist) {
			return nil, nil
		}
		if err != nil {
			return nil, fmt.Errorf("%w: reading the keys for AWS: %w", ErrRefused, err)
		}
		return sectionOf(string(text), section), nil
	}
	section := "profile " + profile
	if !named {
		section = profile
	}
	values, err := read("AWS_CONFIG_FILE", "config", section)
	if err != nil {
		return awsKeys{}, err
	}
	more, err := read("AWS_SHARED_CREDENTIALS_FILE", "credentials", profile)
	if err != nil {
		return awsKeys{}, err
	}
	for _, m := range []map[string]string{more, values} {
		if m["aws_access_key_id"] != "" && m["aws_secret_access_key"] != "" {
			return awsKeys{id: m["aws_access_key_id"], secret: m["aws_secret_access_key"], session: m["aws_session_token"]}, nil
		}
		for _, name := range []string{"role_arn", "credential_source", "credential_process", "sso_session", "sso_account_id", "web_identity_token_file"} {
			if m[name] != "" {
				return awsKeys{}, fmt.Errorf("%w: %s of profile %s is not supported in files for AWS", ErrRefused, name, profile)
			}
		}
	}
	if named && more == nil && values == nil {
		return awsKeys{}, fmt.Errorf("%w: there is no profile %s (AWS_PROFILE) in the files for AWS", ErrRefused, profile)
	}
	return awsKeys{}, nil
}

// sectionOf are the values of a section of an INI file; nil if it is not there.
func sectionOf(text, name string) (values map[string]string) {
	in := false
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "[") && strings.HasSuffix(line, "]") {
			if in = strings.Join(strings.Fields(line[1:len(line)-1]), " ") == name; in && values == nil {
				values = map[string]string{}
			}
			continue
		}
		key, value, ok := strings.Cut(line, "=")
		if in && ok && !strings.HasPrefix(line, "#") && !strings.HasPrefix(line, ";") {
			values[strings.ToLower(strings.TrimSpace(key))] = strings.TrimSpace(value)
		}
	}
	return values
}

// keysAnswer is how containers and machines are told their keys.
type keysAnswer struct {
	Code, Message                      string // of machines
	AccessKeyID                        string `json:"AccessKeyId"`
	SecretAccessKey, Token, Expiration string
}

func (a keysAnswer) keys(from string) (awsKeys, error) {
	if a.Code != "" && a.Code != "Success" {
		return awsKeys{}, fmt.Errorf("%s has no keys for AWS: %s", from, printable(a.Code+" "+a.Message))
	}
	until, err := time.Parse(time.RFC3339, a.Expiration)
	if a.AccessKeyID == "" || a.SecretAccessKey == "" || err != nil && a.Expiration != "" {
		return awsKeys{}, fmt.Errorf("the answer of %s has no keys for AWS", from)
	}
	return awsKeys{id: a.AccessKeyID, secret: a.SecretAccessKey, session: a.Token, until: until}, nil
}

// mayAsk keeps the container's token from being sent anywhere without encryption but to this
// machine, as ECS and EKS have it.
func mayAsk(address string) error {
	u, err := url.Parse(address)
	if err == nil && u.Scheme == "https" && u.Host != "" {
		return nil
	}
	if err == nil && u.Scheme == "http" {
		ip := net.ParseIP(u.Hostname())
		if u.Hostname() == "localhost" || ip != nil && ip.IsLoopback() ||
			slices.Contains([]string{"169.254.170.2", "169.254.170.23", "fd00:ec2::23"}, u.Hostname()) {
			return nil
		}
	}
	return fmt.Errorf("%w: AWS_CONTAINER_CREDENTIALS_FULL_URI must be https, or an address of this machine", ErrRefused)
}

// containerKeys asks the endpoint of a container.
func (k *Keeper) containerKeys(ctx context.Context, address string) (awsKeys, error) {
	token := k.env("AWS_CONTAINER_AUTHORIZATION_TOKEN")
	if file := k.env("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE"); file != "" {
		var err error
		if token, err = readSecret(file); err != nil {
			return awsKeys{}, err
		}
	}
	header := map[string]string{}
	if token != "" {
		header["Authorization"] = token
	}
	return k.askForKeys(ctx, call{client: &k.http.direct, method: "GET", url: address, header: header})
}

func (k *Keeper) askForKeys(ctx context.Context, c call) (awsKeys, error) {
	body, err := c.do(ctx)
	if err != nil {
		return awsKeys{}, err
	}
	var a keysAnswer
	if json.Unmarshal(body, &a) != nil {
		return awsKeys{}, fmt.Errorf("the answer of %s is no JSON", withoutQuery(c.url))
	}
	return a.keys(withoutQuery(c.url))
}

// machineSession is for how long a session with the metadata service is asked for.
const machineSession = 6 * time.Hour

// machineKeys asks the metadata service of a machine, by IMDSv2.
func (k *Keeper) machineKeys(ctx context.Context) (awsKeys, error) {
	base := strings.TrimSuffix(k.env("AWS_EC2_METADATA_SERVICE_ENDPOINT"), "/")
	if base == "" {
		base = "http://169.254.169.254"
	}
	session, _, err := k.imds.get(ctx, struct{}{}, func(ctx context.Context) (string, life, error) {
		body, err := call{
			client: &k.http.direct, method: "PUT", url: base + "/latest/api/token",
			header: map[string]string{"X-aws-ec2-metadata-token-ttl-seconds": fmt.Sprint(int(machineSession.Seconds()))},
		}.do(ctx)
		return string(body), lasting(k.now(), machineSession, time.Minute), err
	})
	if err != nil {
		return awsKeys{}, err
	}
	header := map[string]string{"X-aws-ec2-metadata-token": session}
	const path = "/latest/meta-data/iam/security-credentials/"
	role, err := call{client: &k.http.direct, method: "GET", url: base + path, header: header}.do(ctx)
	if err != nil {
		k.imds.dropAll()
		return awsKeys{}, err
	}
	name, _, _ := strings.Cut(strings.TrimSpace(string(role)), "\n")
	return k.askForKeys(ctx, call{client: &k.http.direct, method: "GET", url: base + path + url.PathEscape(name), header: header})
}

// readSecret reads a file that has nothing but a secret.
func readSecret(path string) (string, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return "", fmt.Errorf("%w: %w", ErrRefused, err) // it says which
	}
	if len(b) > maxAnswer {
		return "", fmt.Errorf("%w: %s has more than %d bytes", ErrRefused, path, maxAnswer)
	}
	return strings.TrimSpace(string(b)), nil
}
