//go:build !profile

package main

func profiled(program func() int) int { return program() }
