package secrets

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pgebb/pgebb/config"
)

// fakeVault is a Vault with a role at each mount. Its answers can be changed between requests.
type fakeVault struct {
	*fake
	token    string // that it takes
	leases   int    // that were given
	namesake string // namespace that it insists on
	status   int    // of what is read; 0 is 200
	ttl      int    // of a static role
}

const secretPart = hush + "-secret"

func newVault(t *testing.T) *fakeVault {
	v := &fakeVault{token: hush + "-token-1", ttl: 600}
	v.fake = newFake(t, v.serve)
	return v
}

func (v *fakeVault) serve(w http.ResponseWriter, r *http.Request) {
	say := func(status int, format string, args ...any) {
		w.WriteHeader(status)
		fmt.Fprintf(w, format, args...)
	}
	if r.Header.Get("X-Vault-Namespace") != v.namesake {
		say(http.StatusNotFound, `{"errors":["no such namespace"]}`)
		return
	}
	if strings.HasSuffix(r.URL.Path, "/login") && r.Method == "POST" {
		var given map[string]string
		_ = json.NewDecoder(r.Body).Decode(&given)
		roles := map[string]string{"/v1/auth/approle/login": "role_id secret_id", "/v1/auth/k8s/login": "role jwt", "/v1/auth/kubernetes/login": "role jwt"}
		names := strings.Fields(roles[r.URL.Path])
		if len(names) == 0 || given[names[0]] != "the-role" || given[names[1]] != secretPart {
			say(http.StatusBadRequest, `{"errors":["invalid role or secret"]}`)
			return
		}
		say(200, `{"auth":{"client_token":%q,"lease_duration":1000}}`, v.token)
		return
	}
	switch {
	case r.Header.Get("X-Vault-Token") != v.token:
		say(http.StatusForbidden, `{"errors":["permission denied"]}`)
	case v.status != 0:
		say(v.status, `{"errors":["1 error occurred:\n\t* it is broken"],"data":{"password":%q}}`, hush)
	case r.URL.Path == "/v1/database/creds/app":
		v.leases++
		say(200, `{"lease_id":"x","lease_duration":100,"data":{"username":"v-app-%d","password":"%s-%d"}}`, v.leases, hush, v.leases)
	case r.URL.Path == "/v1/database/static-creds/app":
		v.leases++
		say(200, `{"lease_duration":0,"data":{"username":"whoever","password":"%s-%d","rotation_period":3600,"ttl":%d}}`, hush, v.leases, v.ttl)
	default:
		say(http.StatusNotFound, `{"errors":[]}`)
	}
}

func (v *fakeVault) want(method, path string) Want {
	return Want{User: "app", Host: "db", Port: 5432, External: config.External{
		Method: method, Path: path, RefreshPercent: 80,
		Vault: config.Vault{URL: v.URL + "/", AuthMethod: "approle", AppRoleRoleID: "the-role", ClientTokenTTL: 60, Namespace: v.namesake},
	}}
}

func withSecret() map[string]string { return map[string]string{"VAULT_SECRET_ID": secretPart} }

func TestDynamicCredentialsOfVault(t *testing.T) {
	v := newVault(t)
	v.namesake = "team/a"
	r := newRig(t, withSecret())
	w := v.want(config.VaultDynamic, "/database/creds/app")
	s := r.mustGet(w)
	if s.User != "v-app-1" || s.Password != hush+"-1" || s.Until != r.time.Add(80*time.Second) {
		t.Errorf("the first are %+v", s)
	}
	replica := w
	replica.Host = "replica"
	if again := r.mustGet(replica); again != s {
		t.Errorf("those for another host of the user are %+v", again)
	}
	other := w
	other.User = "other"
	if o := r.mustGet(other); o.User != "v-app-2" {
		t.Errorf("those of another user are %+v", o)
	}
	r.pass(79 * time.Second)
	if again := r.mustGet(w); again != s {
		t.Errorf("before 80 %% of the lease they are %+v", again)
	}
	r.pass(time.Second)
	if again := r.mustGet(w); again.User != "v-app-3" {
		t.Errorf("after 80 %% of the lease they are %+v", again)
	}
	if n := v.count("POST /v1/auth/approle/login"); n != 1 {
		t.Errorf("there were %d logins", n)
	}
	if !strings.Contains(r.log.String(), "as=v-app-3 valid_for=1m40s") {
		t.Errorf("the log does not tell of it:\n%s", r.log.String())
	}
}

func TestStaticCredentialsOfVault(t *testing.T) {
	v := newVault(t)
	r := newRig(t, withSecret())
	w := v.want(config.VaultStatic, "database/static-creds/app")
	s := r.mustGet(w)
	if s.User != "" || s.Password != hush+"-1" || !s.Until.IsZero() {
		t.Errorf("they are %+v", s)
	}
	r.pass(599 * time.Second)
	if again := r.mustGet(w); again != s {
		t.Errorf("before they are replaced they are %+v", again)
	}
	v.ttl = 0
	r.pass(time.Second)
	if again := r.mustGet(w); again.Password != hush+"-2" {
		t.Errorf("after that they are %+v", again)
	}
	if r.mustGet(w); v.leases != 2 {
		t.Errorf("what is to be replaced this moment was read %d times at once", v.leases-1)
	}
	r.pass(time.Second)
	if again := r.mustGet(w); again.Password != hush+"-3" {
		t.Errorf("a second later they are %+v", again)
	}
}

// TestLoginsToVault logs in by each method, and again when it is time or Vault says so.
func TestLoginsToVault(t *testing.T) {
	file := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(file, []byte(" "+secretPart+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	kubernetes := config.Vault{AuthMethod: "kubernetes", KubernetesRole: "the-role", KubernetesJWTPath: file, ClientTokenTTL: 60}
	mounted := kubernetes
	mounted.AuthMount = "/k8s/"
	for path, settings := range map[string]config.Vault{
		"/v1/auth/approle/login":    {AuthMethod: "approle", AppRoleRoleID: "the-role", AppRoleSecretIDFile: file, ClientTokenTTL: 60},
		"/v1/auth/kubernetes/login": kubernetes, "/v1/auth/k8s/login": mounted,
	} {
		v := newVault(t)
		r := newRig(t, nil)
		w := v.want(config.VaultStatic, "database/static-creds/app")
		settings.URL = v.URL
		w.Vault, v.ttl = settings, 1
		r.mustGet(w)
		r.pass(939 * time.Second)
		r.mustGet(w)
		if n := v.count("POST " + path); n != 1 {
			t.Errorf("%s: %d logins while the token is good", path, n)
		}
		r.pass(time.Second)
		r.mustGet(w)
		if n := v.count("POST " + path); n != 2 {
			t.Errorf("%s: %d logins in all 60 s before the end of the token", path, n)
		}
		v.token = hush + "-token-2" // the other one is revoked
		r.pass(2 * time.Second)
		r.mustGet(w)
		if n := v.count("POST " + path); n != 3 {
			t.Errorf("%s: %d logins in all after the token was revoked", path, n)
		}
	}
}

func TestWhatVaultRefuses(t *testing.T) {
	for _, test := range []struct {
		name   string
		env    map[string]string
		status int
		change func(*Want)
		want   string
		final  bool
	}{
		{"no [vault]", nil, 0, func(w *Want) { w.Vault = config.Vault{} }, "pgdog.toml has no [vault]", true},
		{"no path", nil, 0, func(w *Want) { w.Path = "" }, "server_vault_path", true},
		{"no secret", nil, 0, nil, "VAULT_SECRET_ID is not in the environment", true},
		{"no role", withSecret(), 0, func(w *Want) { w.Vault.AppRoleRoleID = "" }, "approle_role_id of [vault] is missing", true},
		{"no role of Kubernetes", nil, 0, func(w *Want) { w.Vault.AuthMethod = "kubernetes" }, "kubernetes_role of [vault] is missing", true},
		{"no file", nil, 0, func(w *Want) { w.Vault.AppRoleSecretIDFile = "/nowhere/at/all" }, "open /nowhere/at/all: no such file", true},
		{"a wrong secret", map[string]string{"VAULT_SECRET_ID": hush}, 0, nil, "answers 400 Bad Request: invalid role or secret", true},
		{"a path that is none", withSecret(), 0, func(w *Want) { w.Path = "database/creds/other" }, "/v1/database/creds/other answers 404 Not Found", true},
		{"no permission", withSecret(), 403, nil, "answers 403 Forbidden: 1 error occurred:  * it is broken", true},
		{"a static role", withSecret(), 0, func(w *Want) { w.Path = "database/static-creds/app" }, "no lease of a user (a static role needs server_auth", true},
		{"a Vault that is sealed", withSecret(), 503, nil, "answers 503 Service Unavailable", false},
		{"a Vault that is behind", withSecret(), 412, nil, "answers 412 Precondition Failed", false},
		{"too many requests", withSecret(), 429, nil, "answers 429 Too Many Requests", false},
		{"no Vault", withSecret(), 0, func(w *Want) { w.Vault.URL = "http://127.0.0.1:1" }, "connection refused", false},
	} {
		t.Run(test.name, func(t *testing.T) {
			v := newVault(t)
			v.status = test.status
			w := v.want(config.VaultDynamic, "database/creds/app")
			if test.change != nil {
				test.change(&w)
			}
			_, err := newRig(t, test.env).get(w)
			if err == nil || !strings.Contains(err.Error(), test.want) || errors.Is(err, ErrRefused) != test.final {
				t.Errorf("%v (final: %v), want %q (%v)", err, errors.Is(err, ErrRefused), test.want, test.final)
			}
			if strings.Contains(fmt.Sprint(err), hush) {
				t.Error("it tells a secret")
			}
		})
	}
}

// TestVaultGoesOnWithoutARenewal keeps a lease that cannot be replaced for as long as it lasts.
func TestVaultGoesOnWithoutARenewal(t *testing.T) {
	v := newVault(t)
	r := newRig(t, withSecret())
	w := v.want(config.VaultDynamic, "database/creds/app")
	s := r.mustGet(w)
	v.status = 503
	r.pass(90 * time.Second)
	again := r.mustGet(w)
	if again.Password != s.Password || again.Until != r.time.Add(10*time.Second) {
		t.Errorf("it is %+v, with which no server could begin", again)
	}
	r.Reject(w, again)
	if m := r.Memory(); m.Items != 1 {
		t.Errorf("it stays, though a server has refused it: %+v", m)
	}
	r.Keeper.secrets.entries[w.key()] = &entry[Secret]{value: s, known: true, life: life{renew: s.Until, until: s.end}}
	r.mustGet(w)
	if !strings.Contains(r.log.String(), "could not be renewed") || !strings.Contains(r.log.String(), "503") {
		t.Errorf("the log does not say so:\n%s", r.log.String())
	}
	r.pass(10 * time.Second)
	if _, err := r.get(w); err == nil {
		t.Error("a lease that has ended is still used")
	}
}

func TestCredentialsThatPostgresDoesNotTake(t *testing.T) {
	v := newVault(t)
	r := newRig(t, withSecret())
	w := v.want(config.VaultDynamic, "database/creds/app")
	s := r.mustGet(w)
	if r.Reject(w, s) || r.mustGet(w) != s {
		t.Error("a lease of this moment is replaced, and each is a new role")
	}
	r.pass(leastAge)
	if !r.Reject(w, s) {
		t.Error("an older one is not")
	}
	next := r.mustGet(w)
	if next.User != "v-app-2" {
		t.Errorf("the next one is %+v", next)
	}
	r.pass(leastAge)
	if r.Reject(w, s); r.mustGet(w) != next {
		t.Error("that the old one was refused once more takes away the new one")
	}
}

func TestWhatIsForgottenAtAReload(t *testing.T) {
	v := newVault(t)
	r := newRig(t, withSecret())
	w := v.want(config.VaultDynamic, "database/creds/app")
	s := r.mustGet(w)
	if r.Retain([]Want{w}); r.mustGet(w) != s {
		t.Error("what is still wanted is forgotten")
	}
	if m := r.Memory(); m.Items != 2 || m.Bytes <= 0 || m.Limit != Limit {
		t.Errorf("it takes %+v", m)
	}
	r.Retain(nil)
	if m := r.Memory(); m.Items != 0 || m.Bytes != 0 {
		t.Errorf("what nobody wants takes %+v", m)
	}
}

// TestATokenIsNotSentOnWithoutEncryption has a Vault with TLS that sends pgebb away from it.
func TestATokenIsNotSentOnWithoutEncryption(t *testing.T) {
	plain := newFake(t, func(w http.ResponseWriter, r *http.Request) { t.Errorf("%s is asked without TLS", r.URL) })
	over := httptest.NewTLSServer(http.RedirectHandler(plain.URL, http.StatusTemporaryRedirect))
	defer over.Close()
	r := newRig(t, withSecret())
	r.http.vault.Transport = over.Client().Transport
	w := Want{External: config.External{Method: config.VaultStatic, Path: "p", Vault: config.Vault{URL: over.URL, AuthMethod: "approle", AppRoleRoleID: "the-role"}}}
	if _, err := r.get(w); err == nil || !strings.Contains(err.Error(), "307") {
		t.Errorf("it says %v", err)
	}
	over.Client().CloseIdleConnections()
	// A standby that sends it on with the same protocol is followed.
	v := newVault(t)
	standby := newFake(t, func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, v.URL+r.URL.Path, http.StatusTemporaryRedirect)
	})
	w = v.want(config.VaultStatic, "database/static-creds/app")
	w.Vault.URL = standby.URL
	newRig(t, withSecret()).mustGet(w)
}
