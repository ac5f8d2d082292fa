#!/bin/bash
# Runs all tests with the race detector, and fails if any is skipped. PGEBB_TEST_POSTGRES
# names the Postgres that they use; make test starts one.
set -uo pipefail
cd "$(dirname "$0")/.." || exit

log=$(mktemp)
trap 'rm -f "$log"' EXIT

export PGEBB_BIN=$PWD/bin/pgebb-race
go build -race -buildvcs=false -o "$PGEBB_BIN" ./cmd/pgebb || exit 1

all() {
	go test -race -count=1 -timeout 10m -v ./... || return
	# What is said of memory and allocations is not true of a program with the race detector.
	go test -count=1 -v $(git ls-files '*_test.go' | xargs grep -lE '^//go:build !race' | xargs -n1 dirname | sort -u | sed 's|^|./|')
}

all 2>&1 | tee "$log" | grep -vE '^(=== (RUN|PAUSE|CONT|NAME)|PASS$|\s*--- PASS)'
status=${PIPESTATUS[0]}

count() { grep -cE "^\s*--- $1" "$log"; }
skipped=$(count SKIP)
echo "$(count PASS) passed, $(count FAIL) failed, $skipped skipped"
if [ "$skipped" -gt 0 ]; then
	echo "tests were skipped, and none may be:"
	grep -E '^\s*--- SKIP' "$log"
	exit 1
fi
exit "$status"
