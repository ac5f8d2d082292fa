#!/bin/bash
# Runs all tests with the race detector, and fails if any is skipped. PGEBB_TEST_POSTGRES
# names the Postgres that they use; make test starts one.
set -uo pipefail
cd "$(dirname "$0")/.." || exit

log=$(mktemp)
trap 'rm -f "$log" "$log.without"' EXIT

# Every sum of the ledger of memory is compared with a recount meanwhile.
export PGEBB_VERIFY=all

export PGEBB_BIN=$PWD/bin/pgebb-race
go build -race -buildvcs=false -o "$PGEBB_BIN" ./cmd/pgebb || exit 1

# What is said of memory and allocations is not true of a program with the race detector,
# so the tests that are not built with it run without.
without_race() {
	grep -rlE --include='*_test.go' '^//go:build !race' . | while read -r file; do
		names=$(sed -n 's/^func \(Test[A-Za-z0-9_]*\)(.*/\1/p' "$file" | paste -sd '|')
		[ -z "$names" ] || env -u PGEBB_BIN go test -count=1 -v -run "^($names)\$" "$(dirname "$file")" </dev/null || return
	done
}

# They wait most of the time, and what they measure is not time, so they run meanwhile.
all() {
	without_race >"$log.without" 2>&1 &
	local other=$! status=0
	go test -race -count=1 -timeout 12m -parallel 4 -v ./... || status=1
	wait "$other" || status=1
	cat "$log.without"
	return "$status"
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
