package parser

import (
	"sync"

	"golang.org/x/sys/unix"
)

// The parser of Postgres cannot be stopped, and what it does with a deep tree it does by
// recursion, on the stack of the thread that called it: a client could end the process with
// a few kilobytes. So a text gets to it within these limits only. crash_test.go holds, in
// processes of their own, that texts at the limit need no more than a quarter of the stack.
// Within all limits the parser takes some 10 MiB and some 50 ms at the most.
const (
	maxTokens = 20_000    // of a text
	maxText   = 256 << 10 // bytes, without constants and comments

	// maxLevels is the greatest depth. A level takes 360 bytes of stack at the most, and there must be
	// stackPerLevel besides stackReserve.
	maxLevels     = 3000
	stackPerLevel = 2 << 10
	stackReserve  = 256 << 10
)

// maxDepth is the greatest depth that the stacks of this process's threads allow.
var maxDepth = sync.OnceValue(func() int {
	var limit unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_STACK, &limit) != nil {
		return 0
	}
	return depthFor(limit.Cur)
})

// depthFor is the depth for a limit on stacks in bytes. Threads get a stack of that size from the
// C library; one of 2 MiB if there is no limit.
func depthFor(stack uint64) int {
	if stack == unix.RLIM_INFINITY {
		stack = 2 << 20
	}
	if stack < stackReserve {
		return 0
	}
	return int(min(maxLevels, (stack-stackReserve)/stackPerLevel))
}
