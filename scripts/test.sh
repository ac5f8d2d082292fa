#!/bin/bash
# Runs all tests with the race detector, and fails if any is skipped. PGEBB_TEST_POSTGRES
# names the Postgres that they use; make test starts one.
set -uo pipefail
cd "$(dirname "$0")/.."

log=$(mktemp)
trap 'rm -f "$log"' EXIT
go test -race -count=1 -timeout 12m -v ./... 2>&1 | tee "$log" | grep -vE '^(=== |\s*--- PASS|PASS$)'
status=${PIPESTATUS[0]}

passed=$(grep -cE '^\s*--- PASS' "$log")
failed=$(grep -cE '^\s*--- FAIL' "$log")
skipped=$(grep -cE '^\s*--- SKIP' "$log")
echo "$passed passed, $failed failed, $skipped skipped"
if [ "$skipped" -gt 0 ]; then
	echo "tests were skipped that should run:"
	grep -E '^\s*--- SKIP' "$log"
	exit 1
fi
exit "$status"
