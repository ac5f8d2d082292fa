#!/bin/bash
# Runs every fuzz target for a while: fuzz.sh 10s
set -euo pipefail
cd "$(dirname "$0")/.."

for file in $(git ls-files '*_test.go' | xargs grep -lE '^func Fuzz'); do
	for target in $(grep -oE '^func Fuzz[A-Za-z0-9]+' "$file" | cut -d' ' -f2); do
		echo "$(dirname "$file") $target"
		go test "./$(dirname "$file")" -run '^$' -fuzz "^$target\$" -fuzztime "$1"
	done
done
