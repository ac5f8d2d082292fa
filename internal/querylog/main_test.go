package querylog

import (
	"os"
	"testing"

	"github.com/pgebb/pgebb/internal/leak"
)

func TestMain(m *testing.M) { os.Exit(leak.Check(m)) }
