//go:build cgo

package memory

import (
	"os"
	"strings"
	"testing"
)

func hugePagesAllowed(t *testing.T) bool {
	t.Helper()
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	allowed := strings.Contains(string(status), "THP_enabled:\t1")
	if !allowed && !strings.Contains(string(status), "THP_enabled:\t0") {
		t.Fatalf("the system does not say: %s", status)
	}
	return allowed
}

func TestAProcessStartsWithoutHugePagesAndMayHaveThem(t *testing.T) {
	if hugePagesAllowed(t) {
		t.Error("the process started with huge pages")
	}
	for _, allow := range []bool{true, false} {
		if err := AllowHugePages(allow); err != nil {
			t.Fatal(err)
		}
		if hugePagesAllowed(t) != allow {
			t.Errorf("huge pages are not as asked for: %v", allow)
		}
	}
}
