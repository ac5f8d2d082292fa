package frontend

import (
	"sync"
	"testing"

	"github.com/pgebb/pgebb/config"
	"github.com/pgebb/pgebb/internal/scram"
)

// unprepared is an authenticator for which nothing is derived yet.
func unprepared(cfg *config.Config) *Authenticator {
	a := &Authenticator{}
	a.current.Store(a.newAuthConfig(cfg, nil))
	return a
}

// claimants are users of authConfigFor, and one who is none.
var claimants = []string{"one", "two", "both", "hashed", "none", "nobody"}

// verifiersOf is what a login of a user is held to, and how many derivations that took.
func verifiersOf(t *testing.T, a *Authenticator, user string) ([]*scram.Verifier, uint64) {
	t.Helper()
	current := a.current.Load()
	cred, known := current.cfg.Login(user, "d")
	before := a.derived.Load()
	v, err := a.scramVerifiers(current, user, cred, known)
	if err != nil {
		t.Fatal(err)
	}
	return v, a.derived.Load() - before
}

// Whoever can measure a login must not learn from it whether a user exists: what takes
// time is done as often for one as for another.
func TestAllLoginsDeriveAlikeUntilAllIsDerived(t *testing.T) {
	a := unprepared(authConfigFor(t, "scram"))
	for _, when := range []string{"the first login", "the second"} {
		for _, user := range claimants {
			if _, n := verifiersOf(t, a, user); n != 2 { // as many as the user with the most passwords has
				t.Errorf("%s of %s takes %d derivations", when, user, n)
			}
		}
	}
}

func TestNoLoginDerivesOnceAllIsDerived(t *testing.T) {
	a := unprepared(authConfigFor(t, "scram"))
	a.prepare(a.current.Load())
	if n := a.derived.Load(); n != 5 { // one, two twice, both, the console
		t.Errorf("%d verifiers are derived", n)
	}
	for _, user := range claimants {
		if _, n := verifiersOf(t, a, user); n != 0 {
			t.Errorf("a login of %s takes %d derivations", user, n)
		}
	}
}

func TestAReloadDerivesOnlyWhatIsNew(t *testing.T) {
	a := unprepared(authConfigFor(t, "scram"))
	a.prepare(a.current.Load())
	one, _ := verifiersOf(t, a, "one")
	before := a.derived.Load()
	a.Update(authConfigFor(t, "scram"))
	a.working.Wait()
	if n := a.derived.Load() - before; n != 0 {
		t.Errorf("%d verifiers are derived again", n)
	}
	if again, n := verifiersOf(t, a, "one"); n != 0 || again[0] != one[0] {
		t.Errorf("that of a user who is as before is another, which took %d derivations", n)
	}
	a.Update(loadConfig(t, "", "[admin]\npassword = \"of the console\"\n[[databases]]\nname = \"d\"\nhost = \"127.0.0.1\"\n", "[[users]]\nname = \"one\"\npassword = \"another\"\ndatabase = \"d\"\n"))
	a.working.Wait()
	if n := a.derived.Load() - before; n != 1 {
		t.Errorf("for one new password %d verifiers are derived", n)
	}
}

func TestVerifiersAreMadeOnce(t *testing.T) {
	a := unprepared(authConfigFor(t, "scram"))
	got := make([][]*scram.Verifier, 8)
	var wg sync.WaitGroup
	for i := range got {
		wg.Go(func() { got[i], _ = verifiersOf(t, a, "two") })
	}
	wg.Wait()
	for _, v := range got {
		if len(v) != 2 || v[0] != got[0][0] {
			t.Errorf("they are made again: %p, %p", v, got[0])
		}
	}
	if other, _ := verifiersOf(t, a, "one"); string(other[0].Salt) == string(got[0][0].Salt) {
		t.Error("another user has the same salt")
	}
	kept := len(a.current.Load().verifiers)
	if verifiersOf(t, a, "nobody"); len(a.current.Load().verifiers) != kept {
		t.Error("users who do not exist take memory")
	}
}
