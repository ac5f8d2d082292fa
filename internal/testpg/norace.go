//go:build !race

package testpg

const raceEnabled = false
