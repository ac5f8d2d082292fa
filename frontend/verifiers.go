package frontend

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/pgebb/pgebb/config"
	"github.com/pgebb/pgebb/internal/scram"
)

// This file makes the verifiers that SCRAM logins are held to. To derive one of a password
// takes a millisecond or two, so whoever can measure a login could tell whether something
// is derived in it, and so whether the user exists. That is done when a configuration is
// read, therefore, and not in a login; as long as it lasts, all logins derive alike.

// authConfig is a configuration and what is derived from its passwords; both go at a
// reload.
type authConfig struct {
	cfg *config.Config

	most      int                         // passwords that one user has, at least 1; constant
	ready     atomic.Bool                 // all is derived
	verifiers map[string]*derivedVerifier // by credential; constant
	derived   *atomic.Uint64              // counts derivations; those of logins and those before

	mu      sync.Mutex
	fetched map[string]*derivedVerifier // of passwords that are in Vault, the latest of each user; guarded by mu
}

// derivedVerifier is what one credential is held to.
type derivedVerifier struct {
	once      sync.Once
	user      string
	cred      config.Credential
	verifiers []*scram.Verifier
	err       error
}

// credentialKey is what makes a credential of a user another one.
func credentialKey(user string, cred config.Credential) string {
	return strings.Join(append([]string{user, cred.PasswordHash}, cred.Passwords...), "\x00")
}

// newAuthConfig takes from an older one, which may be nil, what is derived already. Nothing
// is derived before prepare.
func (a *Authenticator) newAuthConfig(cfg *config.Config, old *authConfig) *authConfig {
	c := &authConfig{cfg: cfg, most: 1, verifiers: make(map[string]*derivedVerifier), fetched: make(map[string]*derivedVerifier), derived: &a.derived}
	add := func(user string, cred config.Credential) {
		key := credentialKey(user, cred)
		if old != nil && old.verifiers[key] != nil {
			c.verifiers[key] = old.verifiers[key]
		} else if c.verifiers[key] == nil {
			c.verifiers[key] = &derivedVerifier{user: user, cred: cred}
		}
		c.most = max(c.most, len(cred.Passwords))
	}
	if cfg.General.AuthType == config.AuthScram {
		cfg.EachLogin(add)
	}
	for _, user := range append([]string{cfg.Admin.User}, cfg.Admin.StatsUsers...) {
		if cred, ok := cfg.ConsoleLogin(user); ok {
			add(user, cred)
		}
	}
	return c
}

// prepare derives all there is to derive, or stops when there is another configuration.
func (a *Authenticator) prepare(c *authConfig) {
	work := make(chan *derivedVerifier)
	var workers sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		workers.Go(func() {
			for d := range work {
				a.derive(d)
			}
		})
	}
	for _, d := range c.verifiers {
		if a.current.Load() != c {
			break
		}
		work <- d
	}
	close(work)
	workers.Wait()
	c.ready.Store(true)
}

// scramVerifiers returns what the client's proof is held to. Those of several
// passwords, and of a hash beside them, share one salt, since the client is told only
// one.
func (a *Authenticator) scramVerifiers(current *authConfig, user string, cred config.Credential, known bool) ([]*scram.Verifier, error) {
	verifiers := []*scram.Verifier{a.mock(user)}
	derived := 0
	if known {
		d := current.verifiers[credentialKey(user, cred)]
		if d == nil && cred.VaultPath != "" {
			d = current.ofVault(user, cred)
		}
		if d == nil { // it was looked up
			d = &derivedVerifier{user: user, cred: cred}
		}
		derived = a.derive(d)
		if d.err != nil {
			return nil, d.err
		}
		if len(d.verifiers) > 0 {
			verifiers = d.verifiers
		}
	}
	for ; !current.ready.Load() && derived < current.most; derived++ {
		if _, err := a.deriveOne("", verifiers[0].Salt, scram.Iterations); err != nil {
			return nil, err
		}
	}
	return verifiers, nil
}

// ofVault is what a password from Vault is held to, which is derived once and not in each login.
func (c *authConfig) ofVault(user string, cred config.Credential) *derivedVerifier {
	key := user + "\x00" + cred.VaultPath
	c.mu.Lock()
	defer c.mu.Unlock()
	d := c.fetched[key]
	if d == nil || credentialKey(user, d.cred) != credentialKey(user, cred) {
		d = &derivedVerifier{user: user, cred: cred}
		c.fetched[key] = d
	}
	return d
}

// derive makes the verifiers of a credential unless they are there, and returns how many
// derivations that took.
func (a *Authenticator) derive(d *derivedVerifier) (n int) {
	d.once.Do(func() {
		salt, iterations := a.salt(d.user), scram.Iterations
		// Another kind of hash cannot be used for SCRAM; configcheck says so.
		if v, err := scram.Parse(d.cred.PasswordHash); err == nil {
			d.verifiers = append(d.verifiers, v)
			salt, iterations = v.Salt, v.Iterations
		}
		for _, p := range d.cred.Passwords {
			n++
			v, err := a.deriveOne(p, salt, iterations)
			if err != nil {
				d.err = err
				return
			}
			d.verifiers = append(d.verifiers, v)
		}
	})
	return n
}

func (a *Authenticator) deriveOne(password string, salt []byte, iterations int) (*scram.Verifier, error) {
	a.derived.Add(1)
	return scram.Derive(password, salt, iterations)
}

// salt is the salt that a user is told, the same each time, whether or not the user
// exists.
func (a *Authenticator) salt(user string) []byte {
	mac := hmac.New(sha256.New, a.secret[:])
	mac.Write([]byte(user))
	return mac.Sum(nil)[:16]
}

// mock is a verifier that nobody knows the password of.
func (a *Authenticator) mock(user string) *scram.Verifier {
	keys := make([]byte, 2*sha256.Size)
	_, _ = rand.Read(keys) // never fails
	return &scram.Verifier{Iterations: scram.Iterations, Salt: a.salt(user), StoredKey: keys[:32], ServerKey: keys[32:]}
}
