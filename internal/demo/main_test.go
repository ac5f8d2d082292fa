package main

import (
	"os"
	"testing"

	"github.com/pgebb/pgebb/internal/leak"
)

func TestMain(m *testing.M) { os.Exit(leak.Check(m)) }

func TestAveragesThatAreZeroAreNotShown(t *testing.T) {
	const said = "-[ RECORD 1 ]---\ntotal_errors | 0\navg_xact_count | 0.000\navg_query_count     | 12.500\navg_errors | 0\navg_received | 0.001\n"
	const want = "-[ RECORD 1 ]---\ntotal_errors | 0\navg_query_count     | 12.500\navg_received | 0.001\n"
	if got := zeroAverage.ReplaceAllString(said, ""); got != want {
		t.Errorf("shown is\n%s\nwant\n%s", got, want)
	}
}
