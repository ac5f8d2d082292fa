#!/bin/sh
# Installs the drivers of other languages that the tests log in with: pg for Node.js and
# psycopg 3 for Python. Tests run Python's as /usr/bin/python3: another one that comes
# first on the PATH does not have the system's packages.
set -eu
cd "$(dirname "$0")/.."
. scripts/packages.sh

have_psycopg() { /usr/bin/python3 -c 'import psycopg; assert psycopg.__version__ >= "3"' >/dev/null 2>&1; }
have_node() { command -v node >/dev/null 2>&1 && command -v npm >/dev/null 2>&1; }

packages=
if ! have_psycopg; then
	case $(manager) in
	apt-get | zypper) packages="python3 python3-psycopg" ;;
	dnf | yum) packages="python3 python3-psycopg3" ;;
	apk) packages="python3 py3-psycopg" ;;
	*) packages="python python-psycopg" ;;
	esac
fi
have_node || packages="$packages nodejs npm"
if [ -n "$packages" ]; then
	# shellcheck disable=SC2086 # several words
	install $packages
fi
have_psycopg || { echo "/usr/bin/python3 still has no psycopg 3, even after its installation" >&2; exit 1; }
have_node || { echo "node and npm are still not there, even after their installation" >&2; exit 1; }
node -e 'process.exit(process.versions.node.split(".")[0] >= 16 ? 0 : 1)' || {
	echo "node $(node --version) is too old for the package pg, which needs 16" >&2
	exit 1
}

cd internal/e2e/node
if ! cmp -s package-lock.json node_modules/.installed; then
	npm ci --no-audit --no-fund --loglevel=error >&2
	cp package-lock.json node_modules/.installed
fi
