//go:build cgo

package memory

/*
#include <malloc.h>
#include <stddef.h>

#if defined(__GLIBC__) && (__GLIBC__ > 2 || __GLIBC_MINOR__ >= 33)
static void pgebb_read(size_t *used, size_t *idle) {
	struct mallinfo2 m = mallinfo2();
	*used = m.uordblks + m.hblkhd;
	*idle = m.fordblks;
}
static void pgebb_trim(void) { malloc_trim(0); }
static void pgebb_arenas(int n) { mallopt(M_ARENA_MAX, n); }
#else
static void pgebb_read(size_t *used, size_t *idle) { *used = 0; *idle = 0; }
static void pgebb_trim(void) {}
static void pgebb_arenas(int n) { (void)n; }
#endif
*/
import "C"

// readMalloc asks glibc, from 2.33 on.
func readMalloc() CHeap {
	var used, idle C.size_t
	C.pgebb_read(&used, &idle)
	return CHeap{InUse: int64(used), Free: int64(idle)}
}

// trimMalloc returns what malloc keeps for later to the system.
func trimMalloc() { C.pgebb_trim() }

// LimitArenas caps the number of malloc's arenas: each thread that finds all in use
// would make another, and each keeps what was freed in it.
func LimitArenas(n int) { C.pgebb_arenas(C.int(n)) }
