package secrets

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// keysIn is what a token tells of the keys that it was signed with.
func keysIn(t *testing.T, s Secret) (id, session string) {
	t.Helper()
	_, query, _ := strings.Cut(s.Password, "?")
	q, err := url.ParseQuery(query)
	if err != nil {
		t.Fatal(err)
	}
	id, _, _ = strings.Cut(q.Get("X-Amz-Credential"), "/")
	return id, q.Get("X-Amz-Security-Token")
}

// answerKeys answers as containers and machines are told their keys, good until a time.
func answerKeys(w http.ResponseWriter, id string, until time.Time) {
	fmt.Fprintf(w, `{"Code":"Success","Type":"AWS-HMAC","AccessKeyId":%q,"SecretAccessKey":"%s","Token":"session-%s","Expiration":%q}`,
		id, hush, id, until.Format(time.RFC3339))
}

// newMachine is the metadata service of a machine, IMDSv2.
func newMachine(t *testing.T, until func() time.Time) *fake {
	return newFake(t, func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.Method == "PUT" && r.URL.Path == "/latest/api/token" && r.Header.Get("X-aws-ec2-metadata-token-ttl-seconds") == "21600":
			fmt.Fprint(w, hush+"-imds")
		case r.Header.Get("X-aws-ec2-metadata-token") != hush+"-imds":
			w.WriteHeader(http.StatusUnauthorized)
		case r.URL.Path == "/latest/meta-data/iam/security-credentials/":
			fmt.Fprint(w, "the-role\n")
		case r.URL.Path == "/latest/meta-data/iam/security-credentials/the-role":
			answerKeys(w, "MACHINE", until())
		default:
			http.NotFound(w, r)
		}
	})
}

// newSTS gives keys for the token of a pod, and those of a role for other keys.
func newSTS(t *testing.T, until time.Time) *fake {
	return newFake(t, func(w http.ResponseWriter, r *http.Request) {
		_ = r.ParseForm()
		action := r.Form.Get("Action")
		ok := r.Form.Get("Version") == "2011-06-15" && strings.HasPrefix(r.Form.Get("RoleArn"), "arn:") && r.Form.Get("RoleSessionName") == "pgebb"
		if action == "AssumeRoleWithWebIdentity" {
			ok = ok && r.Method == "POST" && r.URL.RawQuery == "" && r.PostForm.Get("WebIdentityToken") == hush+"-jwt"
		} else {
			ok = ok && r.Form.Get("X-Amz-Signature") != "" && strings.HasPrefix(r.Form.Get("X-Amz-Credential"), "ENVIRONMENT/")
		}
		if !ok {
			w.WriteHeader(http.StatusForbidden)
			fmt.Fprint(w, `<ErrorResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><Error><Type>Sender</Type><Code>AccessDenied</Code><Message>not you</Message></Error></ErrorResponse>`)
			return
		}
		fmt.Fprintf(w, `<%[1]sResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><%[1]sResult><Credentials><AccessKeyId>STS-%[1]s</AccessKeyId>`+
			`<SecretAccessKey>%[2]s</SecretAccessKey><SessionToken>s</SessionToken><Expiration>%[3]s</Expiration></Credentials></%[1]sResult></%[1]sResponse>`,
			action, hush, until.Format(time.RFC3339))
	})
}

func write(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestWhereKeysForAWSAreLookedFor takes away, one after the other, what comes before the rest.
func TestWhereKeysForAWSAreLookedFor(t *testing.T) {
	r := newRig(t, nil)
	until := r.time.Add(time.Hour)
	machine := newMachine(t, func() time.Time { return until })
	container := newFake(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != hush+"-bearer" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		answerKeys(w, "CONTAINER", until)
	})
	sts := newSTS(t, until)
	all := map[string]string{
		"AWS_ACCESS_KEY_ID": "ENVIRONMENT", "AWS_SECRET_ACCESS_KEY": hush, "AWS_SESSION_TOKEN": "session-ENVIRONMENT",
		"AWS_WEB_IDENTITY_TOKEN_FILE": write(t, "jwt", hush+"-jwt\n"), "AWS_ROLE_ARN": "arn:aws:iam::1:role/r", "AWS_ENDPOINT_URL_STS": sts.URL,
		"AWS_SHARED_CREDENTIALS_FILE":            write(t, "credentials", "[other]\naws_access_key_id = OTHER\naws_secret_access_key = "+hush+"\n[default]\n# nothing\naws_access_key_id=FILE\naws_secret_access_key = "+hush+"\naws_session_token = session-FILE\n"),
		"AWS_CONFIG_FILE":                        "/nowhere",
		"AWS_CONTAINER_CREDENTIALS_FULL_URI":     container.URL + "/keys",
		"AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE": write(t, "bearer", hush+"-bearer"),
		"AWS_EC2_METADATA_SERVICE_ENDPOINT":      machine.URL,
	}
	for _, step := range []struct{ id, session, goes string }{
		{"ENVIRONMENT", "session-ENVIRONMENT", "AWS_ACCESS_KEY_ID"},
		{"STS-AssumeRoleWithWebIdentity", "s", "AWS_WEB_IDENTITY_TOKEN_FILE"},
		{"FILE", "session-FILE", "AWS_SHARED_CREDENTIALS_FILE"},
		{"CONTAINER", "session-CONTAINER", "AWS_CONTAINER_CREDENTIALS_FULL_URI"},
		{"MACHINE", "session-MACHINE", ""},
	} {
		q := newRig(t, all)
		id, session := keysIn(t, q.mustGet(rdsUser()))
		if id != step.id || session != step.session {
			t.Errorf("the keys are those of %s (%s), want %s", id, session, step.id)
		}
		other := rdsUser()
		other.User = "other"
		q.mustGet(other)
		delete(all, step.goes)
	}
	for what, n := range map[string]int{
		"POST /": sts.count("POST /"), "GET /keys": container.count("GET /keys"),
		"PUT /latest/api/token": machine.count("PUT /latest/api/token"),
	} {
		if n != 1 {
			t.Errorf("for two users %s was asked %d times", what, n)
		}
	}
	all["AWS_EC2_METADATA_DISABLED"] = "TRUE"
	if _, err := newRig(t, all).get(rdsUser()); !errors.Is(err, ErrRefused) {
		t.Errorf("with nothing left: %v", err)
	}
}

func TestKeysOfFiles(t *testing.T) {
	home := t.TempDir()
	if err := os.Mkdir(filepath.Join(home, ".aws"), 0o700); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"config":      "[default]\naws_access_key_id = DEFAULT\naws_secret_access_key = x\n[profile  ours]\naws_access_key_id = OURS\naws_secret_access_key = x\n[profile assumes]\nrole_arn = a\nsource_profile = ours\n",
		"credentials": "[theirs]\naws_access_key_id = THEIRS\naws_secret_access_key = x\n",
	} {
		if err := os.WriteFile(filepath.Join(home, ".aws", name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct{ profile, id, failure string }{
		{"", "DEFAULT", ""}, {"ours", "OURS", ""}, {"theirs", "THEIRS", ""},
		{"assumes", "", "role_arn of profile assumes is not supported"}, {"nobody", "", "there is no profile nobody"},
	} {
		r := newRig(t, map[string]string{"HOME": home, "AWS_PROFILE": c.profile})
		s, err := r.get(rdsUser())
		if err != nil {
			if c.failure == "" || !strings.Contains(err.Error(), c.failure) {
				t.Errorf("%q: %v", c.profile, err)
			}
			continue
		}
		if id, _ := keysIn(t, s); id != c.id {
			t.Errorf("%q: the keys are those of %q, want %q", c.profile, id, c.id)
		}
	}
}

func TestKeysOfAnotherRole(t *testing.T) {
	r := newRig(t, map[string]string{"AWS_ACCESS_KEY_ID": "ENVIRONMENT", "AWS_SECRET_ACCESS_KEY": hush})
	sts := newSTS(t, r.time.Add(time.Hour))
	r.vars["AWS_ENDPOINT_URL"] = sts.URL + "/"
	w := rdsUser()
	w.AssumeRole = "arn:aws:iam::2:role/other"
	if id, session := keysIn(t, r.mustGet(w)); id != "STS-AssumeRole" || session != "s" {
		t.Errorf("the keys are those of %s, %s", id, session)
	}
	w.AssumeRole = hush
	if _, err := r.get(w); err == nil || !strings.Contains(err.Error(), "403 Forbidden: AccessDenied: not you") || !errors.Is(err, ErrRefused) {
		t.Errorf("a role that is refused gives %v", err)
	}
	r.vars["AWS_ENDPOINT_URL"] = "http://127.0.0.1:1"
	w.AssumeRole = "arn:aws:iam::2:role/third"
	if _, err := r.get(w); err == nil || strings.Contains(err.Error(), "X-Amz") || errors.Is(err, ErrRefused) {
		t.Errorf("without the service: %v", err)
	}
}

// TestKeysThatEnd renews keys in time, and makes no token that lasts longer than they do.
func TestKeysThatEnd(t *testing.T) {
	r := newRig(t, nil)
	until := r.time.Add(20 * time.Minute)
	machine := newMachine(t, func() time.Time { return until })
	r.vars["AWS_EC2_METADATA_SERVICE_ENDPOINT"] = machine.URL
	const asked = "GET /latest/meta-data/iam/security-credentials/the-role"
	r.mustGet(rdsUser())
	r.pass(11 * time.Minute)
	r.mustGet(rdsUser()) // these keys have 9 minutes left, and so has the token
	if n := machine.count(asked); n != 1 {
		t.Errorf("the keys were fetched %d times while they are good", n)
	}
	until = until.Add(time.Hour)
	r.pass(5 * time.Minute)
	r.mustGet(rdsUser())
	if n := machine.count(asked); n != 2 {
		t.Errorf("the keys were fetched %d times when they are to be renewed", n)
	}
	if n := machine.count("PUT /latest/api/token"); n != 1 {
		t.Errorf("there were %d sessions with the machine", n)
	}
}

func TestATokenIsMadeAnewWithOtherKeys(t *testing.T) {
	r := newRig(t, map[string]string{"AWS_ACCESS_KEY_ID": "OLD", "AWS_SECRET_ACCESS_KEY": "x"})
	s := r.mustGet(rdsUser())
	r.vars["AWS_ACCESS_KEY_ID"] = "NEW"
	r.pass(time.Minute)
	if !r.Reject(rdsUser(), s) {
		t.Error("a token that was refused stays")
	}
	if id, _ := keysIn(t, r.mustGet(rdsUser())); id != "NEW" {
		t.Errorf("it was signed with the keys of %s", id)
	}
}

// TestAnswersThatAreNone has a machine that answers something else.
func TestAnswersThatAreNone(t *testing.T) {
	for answer, want := range map[string]string{
		`{"Code":"AssumeRoleUnauthorizedAccess","Message":"no trust"}`: "no trust",
		`{"AccessKeyId":"a"}`: "has no keys",
		`{"AccessKeyId":"a","SecretAccessKey":"` + hush + `","Expiration":"soon"}`: "has no keys",
		`<html>` + hush: "is no JSON",
		`{"AccessKeyId":"a","SecretAccessKey":"` + hush + `","Token":"","Expiration":"2020-01-01T00:00:00Z"}`: "have expired at 2020",
		`"` + strings.Repeat(hush, maxAnswer/len(hush)+1) + `"`:                                               "more than 65536 bytes",
	} {
		f := newFake(t, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, answer) })
		r := newRig(t, map[string]string{"AWS_CONTAINER_CREDENTIALS_FULL_URI": f.URL})
		if _, err := r.get(rdsUser()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.60s: %v, want %q", answer, err, want)
		}
	}
}

func TestWhoIsGivenTheTokenOfAContainer(t *testing.T) {
	for address, may := range map[string]bool{
		"https://keys.example.com/": true, "http://localhost:1/": true, "http://127.0.0.5/": true, "http://[::1]/": true,
		"http://169.254.170.2/x": true, "http://169.254.170.23/v1": true, "http://[fd00:ec2::23]/v1": true,
		"http://keys.example.com/": false, "http://10.0.0.1/": false, "ftp://localhost/": false, "": false, "https://": false,
	} {
		if err := mayAsk(address); (err == nil) != may {
			t.Errorf("%s: %v", address, err)
		}
	}
}

// TestAzure gets a token of a workload's identity.
func TestAzure(t *testing.T) {
	n, status := 0, 200
	azure := newFake(t, func(w http.ResponseWriter, r *http.Request) {
		_ = r.ParseForm()
		want := map[string]string{
			"client_id": "the-client", "scope": "https://ossrdbms-aad.database.windows.net/.default", "grant_type": "client_credentials",
			"client_assertion_type": "urn:ietf:params:oauth:client-assertion-type:jwt-bearer", "client_assertion": hush + "-jwt",
		}
		for name, value := range want {
			if r.PostForm.Get(name) != value {
				t.Errorf("%s is %q", name, r.PostForm.Get(name))
			}
		}
		if status != 200 {
			w.WriteHeader(status)
			fmt.Fprint(w, `{"error":"invalid_client","error_description":"AADSTS700213: no matching\r\nTrace ID: x","error_codes":[1]}`)
			return
		}
		n++
		fmt.Fprintf(w, `{"token_type":"Bearer","expires_in":3600,"access_token":"%s-%d"}`, hush, n)
	})
	env := map[string]string{
		"AZURE_TENANT_ID": "the-tenant", "AZURE_CLIENT_ID": "the-client", "AZURE_FEDERATED_TOKEN_FILE": write(t, "jwt", hush+"-jwt"), "AZURE_AUTHORITY_HOST": azure.URL + "/",
	}
	r := newRig(t, env)
	w := Want{User: "app", Host: "h", Port: 1}
	w.Method = "azure_workload_identity"
	s := r.mustGet(w)
	other := Want{External: w.External, User: "other", Host: "x", Port: 2}
	if o := r.mustGet(other); s.Password != hush+"-1" || s.User != "" || o != s || azure.count("POST /the-tenant/oauth2/v2.0/token") != 1 {
		t.Errorf("the token is %+v, that of another user %+v", s, o)
	}
	r.pass(55 * time.Minute)
	if again := r.mustGet(w); again.Password != hush+"-2" {
		t.Errorf("5 minutes before its end it is %+v", again)
	}
	status = 401
	if _, err := newRig(t, env).get(w); err == nil || !strings.Contains(err.Error(), "401 Unauthorized: invalid_client: AADSTS700213: no matching") || !errors.Is(err, ErrRefused) {
		t.Errorf("a refusal gives %v", err)
	}
	for name := range env {
		some := maps.Clone(env)
		delete(some, name)
		if name == "AZURE_AUTHORITY_HOST" {
			continue // it has a default
		}
		if _, err := newRig(t, some).get(w); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("without %s: %v", name, err)
		}
	}
}

// TestProxiesAreForOthers asks through a proxy who is elsewhere, and nobody who is here.
func TestProxiesAreForOthers(t *testing.T) {
	c := newCallers()
	for name, client := range map[string]*http.Client{"direct": &c.direct, "proxied": &c.proxied, "vault": &c.vault} {
		transport := client.Transport.(*http.Transport)
		if (transport.Proxy != nil) != (name != "direct") || !transport.DisableKeepAlives {
			t.Errorf("%s: %+v", name, transport)
		}
	}
	req := httptest.NewRequest("GET", "https://v/", nil)
	if err := c.direct.CheckRedirect(req, []*http.Request{req}); !errors.Is(err, http.ErrUseLastResponse) {
		t.Errorf("a redirection is followed: %v", err)
	}
}
