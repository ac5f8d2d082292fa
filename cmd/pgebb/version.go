package main

import (
	"runtime/debug"
	"strings"
)

// release is the version that is being worked on, or that this is.
const release = "0.1.0-dev"

// version is the release, and the commit where that is known.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return release
	}
	return release + commit(info.Settings)
}

// commit is the commit that a program was built from, with a mark if it was changed
// since; empty if that is not known.
func commit(settings []debug.BuildSetting) string {
	id, changed := "", ""
	for _, s := range settings {
		switch {
		case s.Key == "vcs.revision" && len(s.Value) >= 12:
			id = "+" + s.Value[:12]
		case s.Key == "vcs.modified" && strings.EqualFold(s.Value, "true"):
			changed = ".changed"
		}
	}
	if id == "" {
		return ""
	}
	return id + changed
}
