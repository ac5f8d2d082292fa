# shellcheck shell=sh
# To be sourced: installs packages with the system's package manager.

# manager prints the name of the package manager.
manager() {
	for name in apt-get dnf yum apk pacman zypper; do
		if command -v "$name" >/dev/null 2>&1; then
			echo "$name"
			return
		fi
	done
	echo none
}

# as_root runs a command as root, however this shell runs.
as_root() {
	if [ "$(id -u)" = 0 ]; then
		"$@"
	elif command -v sudo >/dev/null 2>&1; then
		sudo "$@"
	else
		echo "this needs root, and there is no sudo; as root, run: $*" >&2
		return 1
	fi
}

# install installs packages; their names are those of the package manager here. What the
# package manager says goes to standard error.
install() {
	echo "installing $*" >&2
	case $(manager) in
	apt-get)
		as_root apt-get update -q >&2
		as_root env DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends -o DPkg::Lock::Timeout=300 "$@" >&2
		;;
	dnf) as_root dnf install -q -y "$@" >&2 ;;
	yum) as_root yum install -q -y "$@" >&2 ;;
	apk) as_root apk add -q "$@" >&2 ;;
	pacman) as_root pacman -Sy --noconfirm --needed "$@" >&2 ;;
	zypper) as_root zypper --non-interactive install "$@" >&2 ;;
	*)
		echo "no package manager that is known here: install $* by hand" >&2
		return 1
		;;
	esac
}
