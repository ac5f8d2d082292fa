#!/bin/sh
# Finds Postgres's server, psql and pgbench, or installs them with the system's package
# manager. Prints where they are.
set -eu

bindir() {
	for dir in $(command -v pg_ctl >/dev/null 2>&1 && dirname "$(command -v pg_ctl)") \
		$(ls -d /usr/lib/postgresql/*/bin /usr/pgsql-*/bin /usr/libexec/postgresql* 2>/dev/null | sort -rV); do
		[ -x "$dir/initdb" ] && [ -x "$dir/postgres" ] && echo "$dir" && return 0
	done
	return 1
}

complete() {
	bindir >/dev/null && command -v psql >/dev/null 2>&1 && { command -v pgbench >/dev/null 2>&1 || [ -x "$(bindir)/pgbench" ]; }
}

if ! complete; then
	sudo=
	[ "$(id -u)" = 0 ] || sudo=sudo
	echo "Postgres is not complete here: installing it" >&2
	if command -v apt-get >/dev/null 2>&1; then
		# The packages would create and start a cluster that nobody needs.
		$sudo mkdir -p /etc/postgresql-common
		[ -e /etc/postgresql-common/createcluster.conf ] || echo 'create_main_cluster = false' | $sudo tee /etc/postgresql-common/createcluster.conf >/dev/null
		$sudo apt-get update -q >&2
		DEBIAN_FRONTEND=noninteractive $sudo apt-get install -q -y --no-install-recommends postgresql postgresql-client postgresql-contrib >&2
	elif command -v dnf >/dev/null 2>&1; then
		$sudo dnf install -y postgresql-server postgresql postgresql-contrib >&2
	elif command -v apk >/dev/null 2>&1; then
		$sudo apk add postgresql postgresql-client postgresql-contrib >&2
	elif command -v pacman >/dev/null 2>&1; then
		$sudo pacman -Sy --noconfirm postgresql >&2
	elif command -v zypper >/dev/null 2>&1; then
		$sudo zypper install -y postgresql-server postgresql postgresql-contrib >&2
	else
		echo "no package manager that is known: install Postgres's server, psql and pgbench by hand" >&2
		exit 1
	fi
fi

bindir || { echo "Postgres's server was not found, even after its installation" >&2; exit 1; }
