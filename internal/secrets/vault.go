package secrets

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/pgebb/pgebb/config"
)

const (
	// serviceAccount is where the token of a pod's service account is.
	serviceAccount = "/var/run/secrets/kubernetes.io/serviceaccount/token"

	// leastLife is how long a password is kept whose time is up. Vault replaces it a moment after that, and is not to
	// be asked at each login until then.
	leastLife = time.Second
)

// vaultSecret reads a path of Vault's database secrets engine.
func (k *Keeper) vaultSecret(ctx context.Context, w Want) (Secret, life, error) {
	switch {
	case w.Vault.URL == "":
		return Secret{}, life{}, fmt.Errorf("%w: pgdog.toml has no [vault]", ErrRefused)
	case w.Path == "":
		return Secret{}, life{}, fmt.Errorf("%w: the user has no path in Vault (users.toml: server_vault_path)", ErrRefused)
	}
	started := k.now() // a lease begins before its answer is there
	body, err := k.readVault(ctx, w.Vault, w.Path)
	if err != nil {
		return Secret{}, life{}, err
	}
	var a struct {
		LeaseDuration int64 `json:"lease_duration"`
		Data          struct {
			Username, Password string
			TTL                int64
		}
	}
	if json.Unmarshal(body, &a) != nil || a.Data.Password == "" {
		return Secret{}, life{}, fmt.Errorf("%w: what Vault has at %s is no password of a database", ErrRefused, w.Path)
	}
	if w.Method == config.VaultStatic {
		// There is no other one before its time is up.
		end := started.Add(max(inSeconds(a.Data.TTL), leastLife))
		return Secret{Password: a.Data.Password}, life{renew: end, until: end}, nil
	}
	if a.Data.Username == "" || a.LeaseDuration <= 0 {
		return Secret{}, life{}, fmt.Errorf("%w: what Vault has at %s is no lease of a user (a static role needs server_auth = %q)", ErrRefused, w.Path, config.VaultStatic)
	}
	lease := inSeconds(a.LeaseDuration)
	l := life{renew: started.Add(lease / 100 * time.Duration(w.RefreshPercent)), until: started.Add(lease)}
	return Secret{User: a.Data.Username, Password: a.Data.Password, Until: l.renew, end: l.until}, l, nil
}

// readVault reads a path. A token that Vault does not take any more is replaced once.
func (k *Keeper) readVault(ctx context.Context, v config.Vault, path string) ([]byte, error) {
	for again := true; ; again = false {
		token, err := k.vaultToken(ctx, v)
		if err != nil {
			return nil, fmt.Errorf("logging in to Vault: %w", err)
		}
		c := k.toVault(v, "GET", path)
		c.header["X-Vault-Token"] = token
		body, err := c.do(ctx)
		var status *statusError
		if errors.As(err, &status) && status.status == http.StatusForbidden {
			k.tokens.drop(v, func(kept string) bool { return kept == token })
			if again {
				continue
			}
		}
		return body, err
	}
}

func (k *Keeper) toVault(v config.Vault, method, path string) call {
	c := call{
		client: &k.http.vault, method: method, explanations: vaultSays, header: map[string]string{"X-Vault-Request": "true"},
		url: strings.TrimSuffix(v.URL, "/") + "/v1/" + strings.TrimPrefix(path, "/"),
	}
	if v.Namespace != "" {
		c.header["X-Vault-Namespace"] = v.Namespace
	}
	return c
}

// vaultToken is what Vault knows pgebb by, after a login.
func (k *Keeper) vaultToken(ctx context.Context, v config.Vault) (string, error) {
	token, stale, err := k.tokens.get(ctx, v, func(ctx context.Context) (string, life, error) { return k.logIn(ctx, v) })
	if stale != nil {
		k.log.Warn("the token for Vault could not be renewed; the one that is there goes on to be used", "error", stale)
	}
	return token, err
}

func (k *Keeper) logIn(ctx context.Context, v config.Vault) (string, life, error) {
	credentials, err := k.vaultCredentials(v)
	if err != nil {
		return "", life{}, err
	}
	mount := strings.Trim(v.AuthMount, "/")
	if mount == "" {
		mount = v.AuthMethod
	}
	c := k.toVault(v, "POST", "auth/"+mount+"/login")
	if c.body, err = json.Marshal(credentials); err != nil {
		return "", life{}, fmt.Errorf("writing a request: %w", err)
	}
	started := k.now()
	body, err := c.do(ctx)
	if err != nil {
		return "", life{}, err
	}
	var a struct {
		Auth struct {
			ClientToken   string `json:"client_token"`
			LeaseDuration int64  `json:"lease_duration"`
		}
	}
	if json.Unmarshal(body, &a) != nil || a.Auth.ClientToken == "" {
		return "", life{}, errors.New("the answer has no token")
	}
	if a.Auth.LeaseDuration == 0 {
		return a.Auth.ClientToken, life{}, nil // for ever
	}
	return a.Auth.ClientToken, lasting(started, inSeconds(a.Auth.LeaseDuration), inSeconds(int64(v.ClientTokenTTL))), nil
}

// vaultCredentials are what Vault is shown. Files are read at each login, since others replace
// what is in them.
func (k *Keeper) vaultCredentials(v config.Vault) (map[string]string, error) {
	switch {
	case v.AuthMethod == "kubernetes" && v.KubernetesRole == "":
		return nil, fmt.Errorf("%w: kubernetes_role of [vault] is missing", ErrRefused)
	case v.AuthMethod == "kubernetes":
		path := v.KubernetesJWTPath
		if path == "" {
			path = serviceAccount
		}
		token, err := readSecret(path)
		return map[string]string{"role": v.KubernetesRole, "jwt": token}, err
	case v.AppRoleRoleID == "":
		return nil, fmt.Errorf("%w: approle_role_id of [vault] is missing", ErrRefused)
	}
	secret := k.env("VAULT_SECRET_ID")
	if v.AppRoleSecretIDFile != "" {
		var err error
		if secret, err = readSecret(v.AppRoleSecretIDFile); err != nil {
			return nil, err
		}
	}
	if secret == "" {
		return nil, fmt.Errorf("%w: [vault] has no approle_secret_id_file, and VAULT_SECRET_ID is not in the environment", ErrRefused)
	}
	return map[string]string{"role_id": v.AppRoleRoleID, "secret_id": secret}, nil
}

// vaultSays is what is in an error of Vault's.
func vaultSays(answer []byte) string {
	var e struct{ Errors []string }
	if json.Unmarshal(answer, &e) != nil {
		return ""
	}
	return strings.Join(e.Errors, "; ")
}

// longest is longer than anything lasts.
const longest = 10 * 365 * 24 * time.Hour

// inSeconds is what somebody else says in seconds.
func inSeconds(n int64) time.Duration {
	return time.Duration(min(max(n, 0), int64(longest/time.Second))) * time.Second
}
