package backend_test

import (
	"fmt"
	"net"
	"testing"

	"github.com/pgebb/pgebb/backend"
	"github.com/pgebb/pgebb/backend/backendtest"
)

func TestEachPasswordThatIsTriedIsAnAttempt(t *testing.T) {
	fake, err := backendtest.Start()
	if err != nil {
		t.Fatal(err)
	}
	defer fake.Stop()
	for code, want := range map[string]int{"28P01": 3, "53300": 1, "": 1} {
		fake.Deny(code)
		attempts := 0
		session, err := backend.Connect(t.Context(), backend.Target{
			Network: "tcp", Address: fmt.Sprintf("127.0.0.1:%d", fake.Port()), User: "u", Database: "d",
			Passwords: []string{"a", "b", "c"}, Attempt: func() { attempts++ },
		})
		if err == nil {
			session.Conn.Close()
		}
		if attempts != want {
			t.Errorf("with SQLSTATE %q: %d attempts, want %d (%v)", code, attempts, want, err)
		}
	}
}

func TestWhoIsNotThereIsNoAttempt(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ln.Close()
	attempts := 0
	_, err = backend.Connect(t.Context(), backend.Target{Network: "tcp", Address: ln.Addr().String(), Attempt: func() { attempts++ }})
	if err == nil || attempts != 0 {
		t.Errorf("%d attempts, %v", attempts, err)
	}
}
