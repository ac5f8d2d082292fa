//go:build !pgebb_leak

package frontend

// leakABit does nothing; the build tag pgebb_leak is for the test that must notice that it does.
func leakABit() {}
