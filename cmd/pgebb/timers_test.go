package main

import (
	"os"
	"strings"
	"testing"
)

func TestTimersAreCoarse(t *testing.T) {
	b, err := os.ReadFile("/proc/self/timerslack_ns")
	if err != nil {
		t.Fatal(err)
	}
	if slack := strings.TrimSpace(string(b)); slack != "5000000" {
		t.Errorf("timers may be %s ns late", slack)
	}
}
