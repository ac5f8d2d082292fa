#!/bin/sh
# Finds Postgres's server, psql and pgbench, or installs them with the system's package
# manager. Prints the folder of the server's programs.
set -eu
. "$(dirname "$0")/packages.sh"

# The same places, and the same choice, as in internal/testpg.
bindir() {
	if command -v initdb >/dev/null 2>&1; then
		dirname "$(readlink -f "$(command -v initdb)")"
		return
	fi
	for dir in $(ls -d /usr/lib/postgresql/*/bin /usr/pgsql-*/bin /usr/libexec/postgresql* /usr/lib/postgresql*/bin 2>/dev/null | sort -rV) \
		$(pg_config --bindir 2>/dev/null); do
		if [ -x "$dir/initdb" ]; then
			echo "$dir"
			return
		fi
	done
	return 1
}

have_all() {
	dir=$(bindir) || return 1
	for program in psql pgbench; do
		[ -x "$dir/$program" ] || command -v "$program" >/dev/null 2>&1 || return 1
	done
}

if ! have_all; then
	case $(manager) in
	apt-get)
		# Else the package would create and start a cluster that nobody needs.
		if [ ! -e /etc/postgresql-common/createcluster.conf ]; then
			as_root mkdir -p /etc/postgresql-common
			echo 'create_main_cluster = false' | as_root tee /etc/postgresql-common/createcluster.conf >/dev/null
		fi
		install postgresql postgresql-client
		;;
	dnf | yum) install postgresql-server postgresql postgresql-contrib ;;
	apk) install postgresql postgresql-client postgresql-contrib ;;
	zypper) install postgresql-server postgresql postgresql-contrib ;;
	*) install postgresql ;;
	esac
fi

have_all || { echo "initdb, psql or pgbench is still not found, even after their installation" >&2; exit 1; }
bindir
