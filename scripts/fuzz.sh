#!/bin/bash
# Runs every fuzz target for a while: fuzz.sh 10s
set -euo pipefail
cd "$(dirname "$0")/.."

find . -name '*_test.go' -not -path '*/node_modules/*' | sort | while read -r file; do
	sed -n 's/^func \(Fuzz[A-Za-z0-9]*\)(.*/\1/p' "$file" | while read -r target; do
		echo "== $(dirname "$file") $target"
		go test "$(dirname "$file")" -run '^$' -fuzz "^$target\$" -fuzztime "$1" </dev/null
	done
done
