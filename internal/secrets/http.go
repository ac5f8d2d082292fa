package secrets

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
)

// maxAnswer is the longest answer in bytes that is read.
const maxAnswer = 64 << 10

// callers make requests. No connection is kept: there is one request in minutes.
type callers struct {
	direct  http.Client // for addresses of this machine and its network
	proxied http.Client // through a proxy if the environment names one, as all that follow
	vault   http.Client // follows where a standby of Vault sends it
}

func newCallers() *callers {
	direct := &http.Transport{DisableKeepAlives: true, MaxResponseHeaderBytes: maxAnswer}
	proxied := direct.Clone()
	proxied.Proxy = http.ProxyFromEnvironment
	nowhere := func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &callers{
		direct:  http.Client{Transport: direct, CheckRedirect: nowhere},
		proxied: http.Client{Transport: proxied, CheckRedirect: nowhere},
		vault:   http.Client{Transport: proxied, CheckRedirect: toVault},
	}
}

// toVault follows a standby of Vault to the active one, but never to where the token would be
// sent without encryption.
func toVault(to *http.Request, before []*http.Request) error {
	if len(before) > 2 || before[0].URL.Scheme == "https" && to.URL.Scheme != "https" {
		return http.ErrUseLastResponse
	}
	return nil
}

// call is one request.
type call struct {
	client       *http.Client
	method, url  string
	header       map[string]string
	body         []byte
	explanations func(answer []byte) string // what an answer that is none says, without secrets; may be nil
}

// statusError is an answer that is none.
type statusError struct {
	status int
	text   string
}

func (e *statusError) Error() string { return e.text }

// Unwrap makes answers that are not to be expected to change ErrRefused.
func (e *statusError) Unwrap() error {
	switch e.status {
	case http.StatusRequestTimeout, http.StatusTooManyRequests, http.StatusPreconditionFailed: // the last is a Vault that is behind
		return nil
	}
	if e.status >= 500 {
		return nil
	}
	return ErrRefused
}

func (c call) do(ctx context.Context) ([]byte, error) {
	where := withoutQuery(c.url)
	req, err := http.NewRequestWithContext(ctx, c.method, c.url, bytes.NewReader(c.body))
	if err != nil {
		return nil, fmt.Errorf("%w: %s is no address", ErrRefused, where)
	}
	for name, value := range c.header {
		req.Header.Set(name, value)
	}
	resp, err := c.client.Do(req)
	if err != nil {
		return nil, fmt.Errorf("asking %s: %w", where, withoutURL(err))
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer+1))
	if err != nil {
		return nil, fmt.Errorf("reading the answer of %s: %w", where, err)
	}
	if resp.StatusCode != http.StatusOK {
		text := fmt.Sprintf("%s answers %d %s", where, resp.StatusCode, http.StatusText(resp.StatusCode))
		if c.explanations != nil {
			if said := printable(c.explanations(answer)); said != "" {
				text += ": " + said
			}
		}
		return nil, &statusError{resp.StatusCode, text}
	}
	if len(answer) > maxAnswer {
		return nil, fmt.Errorf("%s answers with more than %d bytes", where, maxAnswer)
	}
	return answer, nil
}

// withoutQuery is an address that can be logged: a signature is in the query.
func withoutQuery(address string) string {
	before, _, _ := strings.Cut(address, "?")
	if u, err := url.Parse(before); err == nil {
		return u.Redacted()
	}
	return "an address that is none"
}

// withoutURL is the cause of an error, which has the whole address in it.
func withoutURL(err error) error {
	var u *url.Error
	if errors.As(err, &u) {
		return u.Err
	}
	return err
}

// maxSaid is how much in bytes of what somebody says gets into an error.
const maxSaid = 300

// printable is text of somebody else's that can be put into an error.
func printable(text string) string {
	text = strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(text, "?"))
	if len(text) > maxSaid {
		text = strings.ToValidUTF8(text[:maxSaid], "") + "…"
	}
	return strings.TrimSpace(text)
}

// form is a body of a form.
func form(pairs ...string) []byte {
	v := url.Values{}
	for i := 0; i < len(pairs); i += 2 {
		v.Set(pairs[i], pairs[i+1])
	}
	return []byte(v.Encode())
}

var formHeader = map[string]string{"Content-Type": "application/x-www-form-urlencoded"}
