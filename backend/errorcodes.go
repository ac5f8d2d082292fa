package backend

import "sync"

// maxCodes is how many SQLSTATEs are counted by themselves: PL/pgSQL can raise any.
const maxCodes = 200

// OtherCode stands for the SQLSTATEs beyond that, and for errors without one.
const OtherCode = "other"

// ErrorCodes count errors by SQLSTATE. It is safe for concurrent use.
type ErrorCodes struct {
	mu     sync.Mutex
	counts map[string]uint64 // guarded by mu
}

// Count counts an error.
func (e *ErrorCodes) Count(code []byte) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if n, ok := e.counts[string(code)]; ok { // no copy is made of it
		e.counts[string(code)] = n + 1
		return
	}
	if e.counts == nil {
		e.counts = map[string]uint64{}
	}
	if len(code) != len("00000") || len(e.counts) >= maxCodes {
		e.counts[OtherCode]++
		return
	}
	e.counts[string(code)] = 1
}

// Counts are the numbers of errors so far by SQLSTATE.
func (e *ErrorCodes) Counts() map[string]uint64 {
	e.mu.Lock()
	defer e.mu.Unlock()
	all := make(map[string]uint64, len(e.counts))
	for code, n := range e.counts {
		all[code] = n
	}
	return all
}
