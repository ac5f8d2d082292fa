package testpg

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"syscall"
)

// sweeper is a shell that outlives this process: it reads names of folders and, when
// its input ends because this process has, removes those that are still there. Its tries
// bridge the moment that a server needs to end.
const sweeper = `
set --
while read -r dir; do set -- "$@" "$dir"; done
tries=50
until rm -rf -- "$@" 2>/dev/null || [ $tries -eq 0 ]; do
	tries=$((tries - 1))
	sleep 0.2
done`

var sweeping struct {
	mu    sync.Mutex
	cmd   *exec.Cmd      // guarded by mu; nil until there is something to remove
	input io.WriteCloser // guarded by mu
}

// tempDir makes a folder that is removed at the latest when this process has ended,
// however it ends.
func tempDir(prefix string) (string, error) {
	sweeping.mu.Lock()
	defer sweeping.mu.Unlock()
	if sweeping.cmd == nil {
		cmd := exec.Command("/bin/sh", "-c", sweeper)
		cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // out of reach of an interrupt from the terminal
		input, err := cmd.StdinPipe()
		if err == nil {
			err = cmd.Start()
		}
		if err != nil {
			return "", fmt.Errorf("starting the shell that removes temporary folders: %w", err)
		}
		sweeping.cmd, sweeping.input = cmd, input
	}
	dir, err := os.MkdirTemp("/tmp", prefix)
	if err != nil {
		return "", fmt.Errorf("making a temporary folder: %w", err)
	}
	if _, err := fmt.Fprintln(sweeping.input, dir); err != nil {
		os.RemoveAll(dir)
		return "", fmt.Errorf("having %s removed in the end: %w", dir, err)
	}
	return dir, nil
}

// sweep removes now what tempDir has made.
func sweep() {
	sweeping.mu.Lock()
	defer sweeping.mu.Unlock()
	if sweeping.cmd == nil {
		return
	}
	sweeping.input.Close()
	_ = sweeping.cmd.Wait() // what it could not remove, nobody can
	sweeping.cmd = nil
}

// startBound starts a command that gets the given signal when this process dies. The
// channel is closed when the command has ended.
//
// Linux sends that signal at the end of the thread that has started the command, so a
// goroutine keeps its thread for as long as the command runs.
func startBound(cmd *exec.Cmd, s syscall.Signal) (<-chan struct{}, error) {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Pdeathsig = s
	started, ended := make(chan error, 1), make(chan struct{})
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		defer close(ended)
		err := cmd.Start()
		started <- err
		if err == nil {
			_ = cmd.Wait() // how it has ended is in cmd.ProcessState
		}
	}()
	return ended, <-started
}
