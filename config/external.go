package config

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"slices"
)

// Values of server_auth. All but [FromFile] have servers logged in with what is in no file.
const (
	FromFile     = "password"
	RDSIAM       = "rds_iam"
	AzureToken   = "azure_workload_identity"
	VaultDynamic = "vault_dynamic" // the name of the user is Vault's, too
	VaultStatic  = "vault_static"
)

// External is where credentials for servers come from that are in no file. It can be
// compared.
type External struct {
	Method         string // server_auth
	Region         string // of RDSIAM; empty if it is to be found out
	AssumeRole     string // of RDSIAM; empty for none
	Path           string // in Vault
	RefreshPercent int    // of the life of what VaultDynamic gave
	Vault          Vault  // of the two that have to do with it; zero for others
}

// Vault is the [vault] table. It can be compared.
type Vault struct {
	URL                 string `toml:"url" status:"implemented" doc:"address of Vault, as https://vault.internal:8200; certificates are those of the system (SSL_CERT_FILE)"`
	Namespace           string `toml:"namespace" status:"implemented" doc:"namespace in Vault"`
	AuthMethod          string `toml:"auth_method" values:"kubernetes|approle" status:"implemented" doc:"how to log in to Vault: with the token of the pod's service account, or with a role and its secret"`
	AuthMount           string `toml:"auth_mount" status:"implemented" doc:"where that method is mounted; without it at its own name"`
	KubernetesRole      string `toml:"kubernetes_role" status:"implemented" doc:"role for kubernetes"`
	KubernetesJWTPath   string `toml:"kubernetes_jwt_path" status:"implemented" doc:"file with the token for kubernetes, which is read at each login; without it /var/run/secrets/kubernetes.io/serviceaccount/token"`
	AppRoleRoleID       string `toml:"approle_role_id" status:"implemented" doc:"role for approle"`
	AppRoleSecretIDFile string `toml:"approle_secret_id_file" status:"implemented" doc:"file with the secret for approle, which is read at each login; without it VAULT_SECRET_ID of the environment"`
	ClientTokenTTL      int    `toml:"client_token_ttl" default:"60" unit:"seconds" status:"implemented" doc:"how long before the end of its life the token of a login to Vault is replaced by a new one"`
}

// mostRefreshPercent leaves a fifth of a secret's life to finish what uses it.
const mostRefreshPercent = 80

func (u *User) external() bool { return u.ServerAuth != FromFile && u.ServerAuth != "" }

func (u *User) usesVault() bool { return u.ServerAuth == VaultDynamic || u.ServerAuth == VaultStatic }

// external is where the credentials for a user's servers come from, nil if they are in the files.
func (c *Config) external(u *User) *External {
	e := External{Method: u.ServerAuth}
	switch {
	case !u.external():
		return nil
	case u.ServerAuth == RDSIAM:
		e.Region, e.AssumeRole = u.ServerIAMRegion, u.ServerIAMAssumeRole
	case u.usesVault():
		e.Path, e.Vault, e.RefreshPercent = u.ServerVaultPath, c.Vault, u.VaultRefreshPercent
		if e.RefreshPercent == 0 || e.RefreshPercent > mostRefreshPercent {
			e.RefreshPercent = mostRefreshPercent
		}
	}
	return &e
}

// SameCredentials reports whether the servers of two pools are logged in with the same.
func (p *Pool) SameCredentials(o *Pool) bool {
	same := p.External == o.External || p.External != nil && o.External != nil && *p.External == *o.External
	return same && slices.Equal(p.ServerPasswords, o.ServerPasswords)
}

// readVault reads [vault].
func (d *decoder) readVault(c *Config, main rawTable) {
	raw := d.one(main, "vault")
	if raw.values == nil {
		return
	}
	d.fill(tableNamed("vault"), raw, &c.Vault)
	v := &c.Vault
	u, err := url.Parse(v.URL)
	switch {
	case v.URL == "":
		d.problem(raw.place(), "vault.url", "", "the key is missing")
	case err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" || u.User != nil || u.RawQuery != "":
		d.problem(raw.placeOf("url"), "vault.url", "", "this must be like https://vault.internal:8200")
	case u.Scheme == "http" && !isLoopback(u.Hostname()):
		d.warn(raw.placeOf("url"), "vault.url", "secrets come without encryption, since this is no https")
	}
	_, hasSecret := d.env("VAULT_SECRET_ID")
	switch {
	case v.AuthMethod == "":
		d.problem(raw.placeOf("auth_method"), "vault.auth_method", "", "the key is missing")
	case v.AuthMethod == "kubernetes" && v.KubernetesRole == "":
		d.warn(raw.place(), "vault.kubernetes_role", "the key is missing, and pgebb cannot log in to Vault without it")
	case v.AuthMethod == "approle" && v.AppRoleRoleID == "":
		d.warn(raw.place(), "vault.approle_role_id", "the key is missing, and pgebb cannot log in to Vault without it")
	case v.AuthMethod == "approle" && v.AppRoleSecretIDFile == "" && !hasSecret:
		d.warn(raw.place(), "vault.approle_secret_id_file", "the key is missing, and VAULT_SECRET_ID is not in the environment: pgebb cannot log in to Vault")
	}
}

func isLoopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// checkExternal looks at users whose servers are logged in with what is in no file.
func (d *decoder) checkExternal(c *Config) {
	g := &c.General
	for i := range c.Users {
		u, raw := &c.Users[i], d.users[i]
		at := raw.placeOf("server_auth")
		if u.external() && g.TLSVerify == VerifyDisabled {
			d.problem(at, "users.server_auth", "", "%s needs TLS to servers, and tls_verify is %s", u.ServerAuth, g.TLSVerify)
		}
		if u.external() && g.PassthroughAuth != PassNothing {
			d.problem(at, "users.server_auth", "", "%s does not go with passthrough_auth, which is %s", u.ServerAuth, g.PassthroughAuth)
		}
		if u.VaultPath != "" && c.Vault == (Vault{}) {
			d.warn(raw.placeOf("vault_path"), "users.vault_path", "nobody can log in as user %q: pgdog.toml has no [vault]", u.Name)
		}
		if u.usesVault() {
			d.checkVaultUser(c, u, raw)
		} else if u.ServerVaultPath != "" {
			d.warn(raw.placeOf("server_vault_path"), "users.server_vault_path", "this is not used, since server_auth is %s", u.ServerAuth)
		}
		for _, k := range []struct{ key, value string }{{"server_iam_region", u.ServerIAMRegion}, {"server_iam_assume_role", u.ServerIAMAssumeRole}} {
			if k.value != "" && u.ServerAuth != RDSIAM {
				d.warn(raw.placeOf(k.key), "users."+k.key, "this is not used, since server_auth is %s", u.ServerAuth)
			}
		}
	}
}

func (d *decoder) checkVaultUser(c *Config, u *User, raw rawTable) {
	if c.Vault == (Vault{}) {
		d.warn(raw.placeOf("server_auth"), "users.server_auth", "user %q gets no servers: pgdog.toml has no [vault]", u.Name)
	}
	if u.ServerVaultPath == "" {
		d.warn(raw.placeOf("server_auth"), "users.server_vault_path", "user %q gets no servers: the key is missing", u.Name)
	}
	if p := u.VaultRefreshPercent; p == 0 || p > mostRefreshPercent {
		d.warn(raw.placeOf("vault_refresh_percent"), "users.vault_refresh_percent", "%d is not between 1 and %d, so %d is used", p, mostRefreshPercent, mostRefreshPercent)
	}
}

// refusesExternal says what of a configuration keeps external credentials from being used.
func (c *Config) refusesExternal() error {
	if !slices.ContainsFunc(c.Users, func(u User) bool { return u.external() }) {
		return nil
	}
	if c.General.TLSVerify == VerifyDisabled {
		return errors.New("tls_verify: users with server_auth need TLS to servers")
	}
	if p := c.General.PassthroughAuth; p != PassNothing {
		return fmt.Errorf("passthrough_auth: %s does not go with users that have server_auth", p)
	}
	return nil
}
