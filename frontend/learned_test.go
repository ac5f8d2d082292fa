package frontend

import (
	"io"
	"testing"

	"github.com/pgebb/pgebb/config"
	"github.com/pgebb/pgebb/internal/loop"
)

func TestLearnedUsersAreForgottenOnceNobodyUsesThem(t *testing.T) {
	f := newFrontend(t, "", io.Discard)
	if err := f.Listen(); err != nil {
		t.Fatal(err)
	}
	learn := func(user string) {
		t.Helper()
		if err := f.learn(config.Learned{User: user, Database: "d", Password: "p"}); err != nil {
			t.Fatal(err)
		}
	}
	has := func(user string, known, pool bool) {
		t.Helper()
		if _, is := f.learned(user, "d"); is != known {
			t.Errorf("the password of %s is known: %t", user, is)
		}
		if is := f.registry.Find(user, "d") != nil; is != pool {
			t.Errorf("%s has a pool: %t", user, is)
		}
	}
	learn("u") // who is in the configuration, too
	learn("bob")
	conn := logInAt(t, f.address(0))
	f.forgetUsers(loop.Now() - learnedIdle)
	has("u", true, true)
	has("bob", true, true)

	f.forgetUsers(loop.Now() + learnedIdle)
	has("u", true, true) // it has a client
	has("bob", false, false)

	conn.Close()
	if left := f.Await(t.Context()); left != 0 {
		t.Fatalf("%d clients are left", left)
	}
	f.forgetUsers(loop.Now() + learnedIdle)
	has("u", false, true)
	learn("bob")
	has("bob", true, true)
}
