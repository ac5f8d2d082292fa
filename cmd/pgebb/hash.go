package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"golang.org/x/term"

	"github.com/pgebb/pgebb/internal/scram"
)

// hash prints the verifier of the password in the first line of stdin, which is
// asked for if that is a terminal.
func hash(stdin io.Reader, stdout, stderr io.Writer) int {
	password, err := readPassword(stdin, stderr)
	if err != nil {
		fmt.Fprintln(stderr, "pgebb: hash:", err)
		return exitFailed
	}
	if password == "" {
		fmt.Fprintln(stderr, "pgebb: hash reads a password from standard input, and there is none")
		return exitUsage
	}
	v, err := scram.Derive(password, scram.NewSalt(), scram.Iterations)
	if err != nil {
		fmt.Fprintln(stderr, "pgebb: hash:", err)
		return exitFailed
	}
	fmt.Fprintln(stdout, v)
	return exitOK
}

func readPassword(stdin io.Reader, stderr io.Writer) (string, error) {
	if f, ok := stdin.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		fmt.Fprint(stderr, "Password: ")
		defer restoreOnInterrupt(int(f.Fd()))()
		b, err := term.ReadPassword(int(f.Fd()))
		fmt.Fprintln(stderr)
		if err != nil {
			return "", fmt.Errorf("reading the password: %w", err)
		}
		return string(b), nil
	}
	line, err := bufio.NewReader(stdin).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return "", fmt.Errorf("reading the password: %w", err)
	}
	return strings.TrimRight(line, "\r\n"), nil
}

// restoreOnInterrupt has the terminal echo again if the process is ended while it asks. The goroutine
// ends with that, or when done is called.
func restoreOnInterrupt(fd int) (done func()) {
	state, err := term.GetState(fd)
	if err != nil {
		return func() {}
	}
	ends := make(chan os.Signal, 1)
	signal.Notify(ends, os.Interrupt, syscall.SIGTERM)
	go func() {
		if s, ended := <-ends; ended {
			_ = term.Restore(fd, state)
			signal.Reset(s)
			_ = syscall.Kill(os.Getpid(), s.(syscall.Signal))
		}
	}()
	return func() { signal.Stop(ends); close(ends) }
}
