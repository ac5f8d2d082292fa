package config

import (
	"strings"
	"testing"
)

const aVault = "[vault]\nurl = 'https://v:8200'\nauth_method = 'kubernetes'\nkubernetes_role = 'r'\n"

func TestWhereCredentialsComeFrom(t *testing.T) {
	vault := Vault{URL: "https://v:8200", AuthMethod: "kubernetes", KubernetesRole: "r", ClientTokenTTL: 60}
	for _, test := range []struct {
		users string
		want  *External
	}{
		{"", nil},
		{"server_auth = 'password'", nil},
		{"server_auth = 'rds_iam'\nserver_iam_region = 'eu-west-1'\nserver_iam_assume_role = 'arn'", &External{Method: RDSIAM, Region: "eu-west-1", AssumeRole: "arn"}},
		{"server_auth = 'azure_workload_identity'", &External{Method: AzureToken}},
		{"server_auth = 'vault_dynamic'\nserver_vault_path = 'p'\nvault_refresh_percent = 50", &External{Method: VaultDynamic, Path: "p", RefreshPercent: 50, Vault: vault}},
		{"server_auth = 'vault_static'\nserver_vault_path = 'p'", &External{Method: VaultStatic, Path: "p", RefreshPercent: 80, Vault: vault}},
	} {
		p, ok := mustLoad(t, aVault+oneDatabase, oneUser+test.users+"\nmin_pool_size = 1\n", nil).FindPool("ann", "app")
		if !ok || (p.External == nil) != (test.want == nil) || p.External != nil && *p.External != *test.want {
			t.Errorf("%q: %+v, want %+v", test.users, p.External, test.want)
		}
		if (len(p.ServerPasswords) > 0) != (test.want == nil) {
			t.Errorf("%q: the passwords for servers are %q", test.users, p.ServerPasswords)
		}
		if p.MinSize != 1 {
			t.Errorf("%q: the least size is %d, as if nothing were known to log in with", test.users, p.MinSize)
		}
	}
}

func TestCredentialsThatNobodyCanGet(t *testing.T) {
	for _, test := range []struct{ name, config, users, want string }{
		{"no [vault]", "", "server_auth = 'vault_static'\nserver_vault_path = 'p'\n", `
			warning: users.toml:5: users.server_auth: user "ann" gets no servers: pgdog.toml has no [vault]`},
		{"no [vault] for clients", "", "vault_path = 'p'\n", `
			warning: users.toml:5: users.vault_path: nobody can log in as user "ann": pgdog.toml has no [vault]`},
		{"no path", aVault, "server_auth = 'vault_dynamic'\n", `
			warning: users.toml:5: users.server_vault_path: user "ann" gets no servers: the key is missing`},
		{"too late", aVault, "server_auth = 'vault_dynamic'\nserver_vault_path = 'p'\nvault_refresh_percent = 90\n", `
			warning: users.toml:7: users.vault_refresh_percent: 90 is not between 1 and 80, so 80 is used`},
		{"keys of others", "", "server_auth = 'azure_workload_identity'\nserver_vault_path = 'p'\nserver_iam_region = 'r'\nserver_iam_assume_role = 'a'\n", `
			warning: users.toml:6: users.server_vault_path: this is not used, since server_auth is azure_workload_identity
			warning: users.toml:7: users.server_iam_region: this is not used, since server_auth is azure_workload_identity
			warning: users.toml:8: users.server_iam_assume_role: this is not used, since server_auth is azure_workload_identity`},
		{"no encryption", strings.Replace(aVault, "https", "http", 1), "", `
			warning: pgdog.toml:2: vault.url: secrets come without encryption, since this is no https`},
		{"no encryption on this machine", strings.Replace(aVault, "https://v", "http://127.0.0.1", 1), "", ""},
		{"no role", strings.Replace(aVault, "kubernetes_role", "auth_mount", 1), "", `
			warning: pgdog.toml:1: vault.kubernetes_role: the key is missing, and pgebb cannot log in to Vault without it`},
		{"no role of the other method", "[vault]\nurl = 'https://v'\nauth_method = 'approle'\n", "", `
			warning: pgdog.toml:1: vault.approle_role_id: the key is missing, and pgebb cannot log in to Vault without it`},
		{"no secret", "[vault]\nurl = 'https://v'\nauth_method = 'approle'\napprole_role_id = 'r'\n", "", `
			warning: pgdog.toml:1: vault.approle_secret_id_file: the key is missing, and VAULT_SECRET_ID is not in the environment: pgebb cannot log in to Vault`},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, problems := loadText(t, test.config+oneDatabase, oneUser+test.users, nil)
			expect(t, problems, test.want)
		})
	}
}

func TestAHashDoesForClientsWhereServersNeedNone(t *testing.T) {
	const hash = "SCRAM-SHA-256$4096:AAECAwQFBgcICQoLDA0ODw==$lzjimAPnIeov+dqCs/uVy1700PwQevRa8t3m881dxCs=:yv7pdPM+u1PvNMRconP/GOPtNqM0oq6Hw363MOCm1s8="
	_, problems := loadText(t, "[general]\nauth_type = 'plain'\n"+oneDatabase, "[[users]]\nname = 'ann'\ndatabase = 'app'\nserver_auth = 'rds_iam'\npassword_hash = '"+hash+"'\n", nil)
	expect(t, problems, "")
}

func TestPasswordsOfClientsInVault(t *testing.T) {
	c, problems := loadText(t, aVault+oneDatabase, "[[users]]\nname = 'ann'\ndatabase = 'app'\nvault_path = 'p'\n", nil)
	expect(t, problems, "")
	if cred, ok := c.Login("ann", "app"); !ok || cred.VaultPath != "p" {
		t.Errorf("the credential is %+v", cred)
	}
	c = mustLoad(t, aVault+oneDatabase, oneUser+"vault_path = 'p'\n", nil)
	if cred, _ := c.Login("ann", "app"); len(cred.Passwords) > 0 {
		t.Errorf("beside that of Vault, clients can have %q", cred.Passwords)
	}
	if p, _ := c.FindPool("ann", "app"); len(p.ServerPasswords) != 1 || p.External != nil {
		t.Errorf("servers do not have the password of the file: %+v", p)
	}
}

func TestSetDoesNotTakeAwayWhatCredentialsNeed(t *testing.T) {
	for _, key := range [][2]string{{"tls_verify", "disabled"}, {"passthrough_auth", "enabled_plain"}} {
		for users, refused := range map[string]bool{oneUser: false, oneUser + "server_auth = 'rds_iam'\n": true} {
			if _, err := mustLoad(t, oneDatabase, users, nil).Set(key[0], key[1]); (err != nil) != refused {
				t.Errorf("SET %s TO %s gives %v", key[0], key[1], err)
			}
		}
	}
}
