#!/bin/sh
# Installs the drivers of other languages that the tests log in with: pg for Node.js and
# psycopg 3 for Python.
set -eu
cd "$(dirname "$0")/.."

sudo=
[ "$(id -u)" = 0 ] || sudo=sudo

have_psycopg() { [ -x /usr/bin/python3 ] && /usr/bin/python3 -c 'import psycopg' 2>/dev/null; }
have_node() { command -v node >/dev/null 2>&1 && command -v npm >/dev/null 2>&1; }

if ! have_psycopg || ! have_node; then
	if ! command -v apt-get >/dev/null 2>&1; then
		echo "install node, npm and psycopg 3 for /usr/bin/python3 by hand: only apt-get is known here" >&2
		exit 1
	fi
	packages=
	have_psycopg || packages="python3 python3-psycopg"
	have_node || packages="$packages nodejs npm"
	$sudo apt-get update -q >&2
	# shellcheck disable=SC2086
	DEBIAN_FRONTEND=noninteractive $sudo apt-get install -q -y --no-install-recommends $packages >&2
fi

if [ ! -d internal/e2e/node/node_modules/pg ]; then
	(cd internal/e2e/node && npm ci --no-audit --no-fund --loglevel=error)
fi
