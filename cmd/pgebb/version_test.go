package main

import (
	"runtime/debug"
	"strings"
	"testing"
)

func TestTheVersionNamesTheReleaseAndTheCommit(t *testing.T) {
	if v := version(); !strings.HasPrefix(v, release) {
		t.Errorf("the version is %s", v)
	}
	revision := debug.BuildSetting{Key: "vcs.revision", Value: "0123456789abcdef0123"}
	for _, test := range []struct {
		settings []debug.BuildSetting
		want     string
	}{
		{nil, ""},
		{[]debug.BuildSetting{revision, {Key: "vcs.modified", Value: "false"}}, "+0123456789ab"},
		{[]debug.BuildSetting{{Key: "vcs.modified", Value: "true"}, revision}, "+0123456789ab.changed"},
		{[]debug.BuildSetting{{Key: "vcs.modified", Value: "true"}}, ""},
	} {
		if got := commit(test.settings); got != test.want {
			t.Errorf("%v gives %q, want %q", test.settings, got, test.want)
		}
	}
}
