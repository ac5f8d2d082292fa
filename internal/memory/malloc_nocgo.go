//go:build !cgo

package memory

// Without C there is no heap of C's.

func readMalloc() CHeap { return CHeap{} }

func trimMalloc() {}

// LimitArenas does nothing.
func LimitArenas(int) {}
