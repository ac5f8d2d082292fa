package secrets

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"time"
)

const (
	// azureScope is what a token for Azure Database for PostgreSQL is asked for with.
	azureScope = "https://ossrdbms-aad.database.windows.net/.default"

	azureAuthority = "https://login.microsoftonline.com"

	// azureReserve is left of the life of a token when it is replaced.
	azureReserve = 5 * time.Minute
)

// azureToken gets a token for Postgres, which takes it as a password, for that of the pod's
// service account.
func (k *Keeper) azureToken(ctx context.Context) (string, life, error) {
	token, length, err := k.askAzure(ctx)
	return token, lasting(k.now(), length, azureReserve), err
}

func (k *Keeper) askAzure(ctx context.Context) (token string, length time.Duration, err error) {
	settings := map[string]string{}
	for _, name := range []string{"AZURE_TENANT_ID", "AZURE_CLIENT_ID", "AZURE_FEDERATED_TOKEN_FILE"} {
		if settings[name] = k.env(name); settings[name] == "" {
			return "", 0, fmt.Errorf("%w: %s is not in the environment", ErrRefused, name)
		}
	}
	assertion, err := readSecret(settings["AZURE_FEDERATED_TOKEN_FILE"])
	if err != nil {
		return "", 0, err
	}
	authority := strings.TrimSuffix(k.env("AZURE_AUTHORITY_HOST"), "/")
	if authority == "" {
		authority = azureAuthority
	}
	c := call{
		client: &k.http.proxied, method: "POST", header: formHeader, explanations: azureSays,
		url: authority + "/" + url.PathEscape(settings["AZURE_TENANT_ID"]) + "/oauth2/v2.0/token",
		body: form("client_id", settings["AZURE_CLIENT_ID"], "scope", azureScope, "grant_type", "client_credentials",
			"client_assertion_type", "urn:ietf:params:oauth:client-assertion-type:jwt-bearer", "client_assertion", assertion),
	}
	body, err := c.do(ctx)
	if err != nil {
		return "", 0, err
	}
	var a struct {
		AccessToken string      `json:"access_token"`
		ExpiresIn   json.Number `json:"expires_in"`
	}
	if json.Unmarshal(body, &a) != nil || a.AccessToken == "" {
		return "", 0, fmt.Errorf("the answer of %s has no token", withoutQuery(c.url))
	}
	seconds, err := a.ExpiresIn.Int64()
	if err != nil || seconds <= 0 {
		return "", 0, fmt.Errorf("the answer of %s does not say how long the token is good", withoutQuery(c.url))
	}
	return a.AccessToken, inSeconds(seconds), nil
}

// azureSays is what is in an error of the service.
func azureSays(answer []byte) string {
	var e struct {
		Error       string `json:"error"`
		Description string `json:"error_description"`
	}
	if json.Unmarshal(answer, &e) != nil {
		return ""
	}
	return e.Error + ": " + e.Description
}
