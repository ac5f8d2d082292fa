package secrets

import (
	"context"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

const (
	// tokenLife is how long Postgres on RDS takes a token. A connection that is there stays.
	tokenLife = 15 * time.Minute

	// tokenReserve is left of that when a token is replaced, for the time that a login takes
	// and for clocks that differ.
	tokenReserve = 5 * time.Minute
)

// rdsToken makes a token for a user of a Postgres on RDS, which takes it as a password. It is
// a signed request that nobody ever sends.
func (k *Keeper) rdsToken(ctx context.Context, w Want) (string, life, error) {
	region, err := k.regionOf(w)
	if err != nil {
		return "", life{}, err
	}
	keys, err := k.awsKeys(ctx, awsRole{arn: w.AssumeRole, region: region})
	if err != nil {
		return "", life{}, err
	}
	now := k.now()
	host := net.JoinHostPort(w.Host, strconv.Itoa(w.Port))
	token := host + "/?" + presigning{
		host: host, path: "/", query: url.Values{"Action": {"connect"}, "DBUser": {w.User}},
		service: "rds-db", region: region, bodyHash: emptyBody, expires: tokenLife, at: now,
	}.sign(keys)
	length := tokenLife
	if !keys.until.IsZero() {
		length = min(length, keys.until.Sub(now))
	}
	return token, lasting(now, length, tokenReserve), nil
}

// regionOf is the region of the database. The name of its host knows it better than the
// environment, which has that of pgebb.
func (k *Keeper) regionOf(w Want) (string, error) {
	for _, region := range []string{w.Region, regionOfHost(w.Host), k.env("AWS_REGION"), k.env("AWS_DEFAULT_REGION")} {
		if region != "" {
			return region, nil
		}
	}
	return "", fmt.Errorf("%w: the region of %s is not known (users.toml: server_iam_region)", ErrRefused, w.Host)
}

// regionOfHost is the region in a name that RDS gives, as name.id.region.rds.amazonaws.com;
// empty if it is none.
func regionOfHost(host string) string {
	labels := strings.Split(strings.TrimSuffix(strings.ToLower(host), "."), ".")
	i := slices.Index(labels, "rds")
	if i < 1 {
		return ""
	}
	if rest := strings.Join(labels[i+1:], "."); rest != "amazonaws.com" && rest != "amazonaws.com.cn" {
		return ""
	}
	return labels[i-1]
}
