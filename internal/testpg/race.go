//go:build race

package testpg

const raceEnabled = true
