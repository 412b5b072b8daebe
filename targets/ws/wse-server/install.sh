#!/bin/sh
# Looks for CPython 3.12 or newer, and installs it by the system's packages where these have it. Elsewhere the target is optional: says how to get one.
set -eu
cd "$(dirname "$0")"

sh build.sh --interpreter >/dev/null 2>&1 && exit 0

# The minor version of the system's own Python, which is too old in Debian 12.
candidate() {
    apt-cache policy python3 2>/dev/null | sed -n 's/^ *Candidate: 3\.\([0-9]*\).*/\1/p'
}

if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
    newest=$(candidate)
    if [ "${newest:-0}" -ge 12 ]; then
        sh ../../../scripts/apt-install.sh wse-server python3 python3-venv
        sh build.sh --interpreter >/dev/null && exit 0
    fi
fi
echo "wse-server: optional, and no CPython 3.12 or newer here; build it: sh targets/ws/wse-server/build-cpython.sh"
