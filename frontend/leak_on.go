//go:build pgebb_leak

package frontend

import "sync"

var (
	leaking sync.Mutex
	leaked  [][]byte // guarded by leaking
)

// leakABit keeps 512 bytes for ever. It is called once for each transaction.
func leakABit() {
	leaking.Lock()
	defer leaking.Unlock()
	leaked = append(leaked, make([]byte, 512))
}
