package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
)

var (
	processed = regexp.MustCompile(`number of transactions actually processed: (\d+)`)
	perSecond = regexp.MustCompile(`tps = ([0-9.]+)`)
	sysEnter  = regexp.MustCompile(`(?m)^(\d+),.*raw_syscalls:sys_enter`)
)

// pgbench runs SELECT 1 with 16 clients.
func (b *rig) pgbench(s *system, protocol string) (sample, error) {
	length := []string{"-T", strconv.Itoa(b.o.seconds)}
	if b.o.transactions > 0 {
		length = []string{"-t", strconv.Itoa(b.o.transactions)}
	}
	args := append([]string{b.bencher, "-n", "-h", s.host, "-p", strconv.Itoa(s.port), "-U", b.user, "-c", "16", "-j", "2"}, length...)
	args = append(args, "-M", protocol, "-f", "-", b.database)
	counted := b.o.syscalls && s.pid != 0
	if counted {
		args = append([]string{"perf", "stat", "-x", ",", "-e", "raw_syscalls:sys_enter", "-p", strconv.Itoa(s.pid), "--"}, args...)
	}
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Stdin = strings.NewReader("SELECT 1;\n")
	cmd.Env = append(os.Environ(), "PGPASSWORD="+b.password, "PGSSLMODE="+b.sslmode(s))
	var out, said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &said
	cost, err := s.spending(cmd.Run)
	if err != nil {
		return nil, fmt.Errorf("%s: %w\n%s%s", strings.Join(args, " "), err, &out, &said)
	}
	transactions, found, err := parsePgbench(out.String())
	if err != nil {
		return nil, err
	}
	if cost.known {
		found["cpu_us"] = float64(cost.cpu.Nanoseconds()) / 1e3 / transactions
		found["switches"] = cost.switches / transactions
	}
	if counted {
		n, err := number(sysEnter, said.String())
		if err != nil {
			return nil, fmt.Errorf("counting system calls by perf: %w", err)
		}
		found["syscalls"] = n / transactions
	}
	return found, nil
}

// parsePgbench reads the number of transactions and the rate from what pgbench says.
func parsePgbench(out string) (transactions float64, found sample, err error) {
	if transactions, err = number(processed, out); err != nil {
		return 0, nil, fmt.Errorf("reading what pgbench says: %w", err)
	}
	if transactions == 0 {
		return 0, nil, fmt.Errorf("pgbench has made no transaction; on a busy machine its time (-seconds) may be over before it has logged in:\n%s", out)
	}
	tps, err := number(perSecond, out)
	if err != nil {
		return 0, nil, fmt.Errorf("reading what pgbench says: %w", err)
	}
	return transactions, sample{"tps": tps}, nil
}

// number is what the group of an expression matches.
func number(expression *regexp.Regexp, text string) (float64, error) {
	match := expression.FindStringSubmatch(text)
	if match == nil {
		return 0, fmt.Errorf("%q is not in\n%s", expression, text)
	}
	return strconv.ParseFloat(match[1], 64)
}
