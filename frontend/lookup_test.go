package frontend

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pgebb/pgebb/config"
	"github.com/pgebb/pgebb/internal/scram"
)

// row is what auth_query returns; "NULL" is NULL.
func row(columns ...string) [][]byte {
	r := [][]byte{}
	for _, c := range columns {
		if c == "NULL" {
			r = append(r, nil)
			continue
		}
		r = append(r, []byte(c))
	}
	return r
}

func TestWhatAuthQueryReturns(t *testing.T) {
	v, err := scram.Derive("x", []byte("0123456789abcdef"), 64)
	if err != nil {
		t.Fatal(err)
	}
	md5 := "md5" + strings.Repeat("a", 32)
	for _, c := range []struct {
		row     [][]byte
		want    *config.Credential
		expires int64 // in milliseconds since 1970; 0 for never
		fails   bool
	}{
		{row: nil},
		{row: row("u", "NULL")},
		{row: row("u", "")},
		{row: row("u", v.String()), want: &config.Credential{PasswordHash: v.String(), Certificate: true}},
		{row: row("u", md5), want: &config.Credential{PasswordHash: md5, Certificate: true}},
		{row: row("u", "md5"), want: &config.Credential{Passwords: []string{"md5"}, Certificate: true}},
		{row: row("u", "x", "NULL"), want: &config.Credential{Passwords: []string{"x"}, Certificate: true}},
		{row: row("u", "x", "1500000000.25"), want: &config.Credential{Passwords: []string{"x"}, Certificate: true}, expires: 1500000000250},
		{row: row("u", "x", "-1"), want: &config.Credential{Passwords: []string{"x"}, Certificate: true}, expires: 1000},
		{row: row("u", "x", "Infinity"), want: &config.Credential{Passwords: []string{"x"}, Certificate: true}},
		{row: row("u", "x", "-Infinity"), want: &config.Credential{Passwords: []string{"x"}, Certificate: true}, expires: 1000},
		{row: row("u", "x", "soon"), fails: true},
		{row: row("v", "x"), fails: true},
		{row: row("NULL", "x"), fails: true},
		{row: row("u"), fails: true},
		{row: row("u", "x", "1", "2"), fails: true},
	} {
		l, err := newLookUp(c.row, "u")
		if (err != nil) != c.fails {
			t.Errorf("%q: %v", c.row, err)
		}
		if err != nil {
			continue
		}
		if fmt.Sprint(l.cred) != fmt.Sprint(c.want) {
			t.Errorf("%q is read as %+v", c.row, l.cred)
		}
		if c.expires == 0 != l.expires.IsZero() || c.expires != 0 && l.expires.UnixMilli() != c.expires {
			t.Errorf("%q expires at %v", c.row, l.expires)
		}
	}
}

func TestAUserIsLookedUpOnce(t *testing.T) {
	u := newLookUps(1 << 20)
	var asked atomic.Int64
	found := &lookUp{cred: &config.Credential{PasswordHash: "x"}}
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() {
			l, err := u.get(lookUpKey{user: "u"}, time.Hour, func() (*lookUp, error) { asked.Add(1); return found, nil })
			if l != found || err != nil {
				t.Errorf("%v, %v", l, err)
			}
		})
	}
	wg.Wait()
	if asked.Load() != 1 {
		t.Errorf("Postgres is asked %d times", asked.Load())
	}
	if _, err := u.get(lookUpKey{user: "u"}, 0, func() (*lookUp, error) { asked.Add(1); return found, nil }); err != nil || asked.Load() != 2 {
		t.Errorf("what is too old is not looked up again (%v)", err)
	}
	failed := errors.New("no Postgres")
	if _, err := u.get(lookUpKey{user: "v"}, time.Hour, func() (*lookUp, error) { return nil, failed }); !errors.Is(err, failed) {
		t.Error(err)
	}
	if _, ok := u.cache.Get(lookUpKey{user: "v"}); ok || len(u.waiting) != 0 {
		t.Error("a failure is kept")
	}
}

func TestWhatWasLookedUpIsBoundedInBytes(t *testing.T) {
	const limit = 100_000
	u := newLookUps(limit)
	for i := range 10_000 {
		_, _ = u.get(lookUpKey{user: fmt.Sprint("user ", i)}, time.Hour, func() (*lookUp, error) {
			return &lookUp{cred: &config.Credential{PasswordHash: strings.Repeat("x", 130)}}, nil
		})
		if n := u.cache.Bytes(); n > limit {
			t.Fatalf("%d bytes are kept", n)
		}
	}
	if n := u.cache.Len(); n < 100 {
		t.Errorf("only %d users are kept", n)
	}
}
