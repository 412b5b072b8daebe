#!/bin/sh
# Installs CPython 3.11 or newer with venv, by the system's packages, where there is none. Silent when it is there.
set -eu
cd "$(dirname "$0")"

if sh build.sh --interpreter >/dev/null 2>&1; then
    exit 0
fi
command -v apt-get >/dev/null 2>&1 || {
    echo "python-websockets: install CPython 3.11 or newer with its venv module" >&2
    exit 1
}
as_root() {
    if [ "$(id -u)" = 0 ]; then "$@"; elif command -v sudo >/dev/null 2>&1; then sudo "$@"; else
        echo "python-websockets: needs root to install python3-venv" >&2
        exit 1
    fi
}
as_root apt-get -o DPkg::Lock::Timeout=600 -qq update
as_root apt-get -o DPkg::Lock::Timeout=600 install -y -qq --no-install-recommends python3 python3-venv >/dev/null
sh build.sh --interpreter >/dev/null
