#!/bin/sh
# Installs Debian packages, after saying which. PLIMSOLL_INSTALL=no forbids it (scripts/may-install.sh).
#
#   sh scripts/apt-install.sh WHO PACKAGE…
set -eu
who=$1
shift
sh "$(dirname "$0")/may-install.sh" "$who" "Debian packages $*"

command -v apt-get >/dev/null 2>&1 || { echo "$who: there is no apt-get here; install these and run again: $*" >&2; exit 1; }
if [ "$(id -u)" = 0 ]; then as_root=; elif command -v sudo >/dev/null 2>&1; then as_root=sudo; else
    echo "$who: installing needs root; run as root: apt-get install $*" >&2
    exit 1
fi
log=$(mktemp)
trap 'rm -f "$log"' EXIT
apt() {
    # Tries twice, because another installation at the same time may hold a file that this one needs.
    $as_root env DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=600 "$@" >"$log" 2>&1 </dev/null ||
        { sleep 2; $as_root env DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=600 "$@" >"$log" 2>&1 </dev/null; }
}
failed() {
    grep -m 3 '^[EW]:' "$log" >&2 || tail -n 3 "$log" >&2
    echo "$who: apt-get $1 failed" >&2
    exit 1
}
apt update || failed update
apt install -y --no-install-recommends "$@" || failed "install $*"
