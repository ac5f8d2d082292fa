package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/pgebb/pgebb/internal/testpg"
)

func TestTheCommandLineIsChecked(t *testing.T) {
	tests := []struct{ args, want string }{
		{"-only simple,idle -rounds 2", ""},
		{"-quick -syscalls -auth scram", ""},
		{"-server 127.0.0.1:6432 -pid 7 -server [::1]:6433", ""},
		{"-only simple,nonsense", `no scenario is named "nonsense"`},
		{"-rounds 0", "must be at least 1"},
		{"-seconds 0", "must be at least 1"},
		{"-auth gss", `-auth "gss" is none of`},
		{"-server 127.0.0.1", "missing port"},
		{"-server 127.0.0.1:postgres", `the port "postgres" is no number`},
		{"-server a:1 -server b:2 -server c:3", "two servers can be compared"},
		{"-pid 7", "it follows the -server"},
		{"-server a:1 -pid 0", "it is no process id"},
		{"pgebb", `"pgebb" is no flag`},
	}
	for _, test := range tests {
		_, err := parse(strings.Fields(test.args), io.Discard)
		switch {
		case test.want == "" && err != nil:
			t.Errorf("%s: %v", test.args, err)
		case test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)):
			t.Errorf("%s: %v, want %q", test.args, err, test.want)
		}
	}
}

func TestServersHaveTheirProcesses(t *testing.T) {
	o, err := parse(strings.Fields("-server 127.0.0.1:6432 -pid 7 -server [::1]:6433"), io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, s := range o.servers {
		got = append(got, fmt.Sprintf("%s: host %s, port %d, pid %d", s.name, s.host, s.port, s.pid))
	}
	want := []string{"127.0.0.1:6432: host 127.0.0.1, port 6432, pid 7", "[::1]:6433: host ::1, port 6433, pid 0"}
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestTheEnvironmentNamesAnotherBinary(t *testing.T) {
	t.Setenv(testpg.EnvBinary, "/elsewhere/pgebb")
	for args, want := range map[string]string{"": "/elsewhere/pgebb", "-pgebb here": "here"} {
		o, err := parse(strings.Fields(args), io.Discard)
		if err != nil || o.binary != want {
			t.Errorf("%q: binary %q, error %v, want %q", args, o.binary, err, want)
		}
	}
}

func TestMoreClientsThanDescriptorsAreRefused(t *testing.T) {
	err := raiseDescriptors(options{clients: 1 << 40})
	if err == nil || !strings.Contains(err.Error(), "-idle") {
		t.Errorf("%v", err)
	}
	if err := raiseDescriptors(options{clients: 1 << 40, only: []string{"simple"}}); err != nil {
		t.Errorf("without idle clients: %v", err)
	}
}

func TestScenariosHaveNamesAndKeysOfTheirOwn(t *testing.T) {
	all := names()
	slices.Sort(all)
	if len(slices.Compact(all)) != len(scenarios) {
		t.Errorf("two scenarios have one name: %q", all)
	}
	for _, sc := range scenarios {
		keys := map[string]bool{}
		for _, m := range sc.metrics {
			if keys[m.key] {
				t.Errorf("%s has two metrics %s", sc.name, m.key)
			}
			keys[m.key] = true
		}
	}
}
