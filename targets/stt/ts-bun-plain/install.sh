#!/bin/sh
# Brings what the build needs to a Debian machine: Node.js with npm, and with them Bun and the tools of the tests.
# Does nothing where they are. To be run as root if Node.js is missing.
set -eu
cd "$(dirname "$0")"

fail() {
    echo "ts-bun-plain/install.sh: $1" >&2
    exit 1
}

npm --version >/dev/null 2>&1 || sh ../../../scripts/apt-install.sh ts-bun-plain nodejs npm
# What comes by npm stays within this folder.
[ "${PLIMSOLL_INSTALL:-}" != list ] || exit 0
sh build.sh >/dev/null 2>&1 || fail "npm ci failed; build.sh in this folder shows why"
