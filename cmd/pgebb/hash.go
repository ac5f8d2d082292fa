package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/pgebb/pgebb/internal/scram"
)

// hash prints the verifier of the password in the first line of stdin.
func hash(stdin io.Reader, stdout, stderr io.Writer) int {
	line, err := bufio.NewReader(stdin).ReadString('\n')
	password := strings.TrimRight(line, "\r\n")
	if err != nil && !errors.Is(err, io.EOF) || password == "" {
		fmt.Fprintln(stderr, "pgebb: hash reads a password from standard input, and there is none")
		return exitUsage
	}
	v, err := scram.Derive(password, scram.NewSalt(), scram.Iterations)
	if err != nil {
		fmt.Fprintln(stderr, "pgebb:", err)
		return exitFailed
	}
	fmt.Fprintln(stdout, v)
	return exitOK
}
