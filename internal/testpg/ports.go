package testpg

import (
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"strconv"
)

// FreePort finds a loopback port that nobody listens at. It is none of those that the
// kernel gives to connections and to listeners that do not care, so that it is still
// free when the server that it is for gets there.
func FreePort() (int, error) {
	const low = 10_000
	ephemeral := 32_768
	if b, err := os.ReadFile("/proc/sys/net/ipv4/ip_local_port_range"); err == nil {
		if _, err := fmt.Sscan(string(b), &ephemeral); err != nil {
			return 0, fmt.Errorf("reading the range of ephemeral ports: %w", err)
		}
	}
	if ephemeral <= low+1000 {
		return anyPort("0")
	}
	for range 100 {
		if port, err := anyPort(strconv.Itoa(low + rand.IntN(ephemeral-low))); err == nil {
			return port, nil
		}
	}
	return 0, fmt.Errorf("none of 100 random loopback ports between %d and %d is free", low, ephemeral)
}

// anyPort listens for a moment, which shows that the port is free.
func anyPort(port string) (int, error) {
	ln, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", port))
	if err != nil {
		return 0, fmt.Errorf("finding a free port: %w", err)
	}
	defer ln.Close()
	return ln.Addr().(*net.TCPAddr).Port, nil
}
