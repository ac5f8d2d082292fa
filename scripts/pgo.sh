#!/bin/bash
# Makes cmd/pgebb/default.pgo anew: what pgebb spends its processor time on under the loads
# of the benchmark. It is worth doing when the relay has changed a lot.
set -euo pipefail
cd "$(dirname "$0")/.."

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
chmod 0777 "$work"

go build -trimpath -tags profile -pgo off -o "$work/pgebb" ./cmd/pgebb
PGEBB_PROFILE=$work go run ./internal/bench -pgebb "$work/pgebb" \
	-only simple,extended,rows,results,logins -rounds 5
go tool pprof -proto -output "$work/merged" "$work"/pgebb-*.pprof
# The folder in which this has run is nobody's business; a path of another length would break the file.
zcat "$work/merged" | LC_ALL=C sed "s|$work|$(printf "%${#work}s" | tr ' ' /)|g" | gzip -n >cmd/pgebb/default.pgo
