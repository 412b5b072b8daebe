#!/bin/sh
# Brings what the build needs to a Debian machine: Node.js with npm, and with them Bun and the tools of the tests. Does nothing where they are.
# To be run as root if Node.js is missing.
set -eu
cd "$(dirname "$0")"

fail() {
    echo "ts-bun-echo/install.sh: $1" >&2
    exit 1
}

if ! npm --version >/dev/null 2>&1; then
    command -v apt-get >/dev/null || fail "npm is missing; install Node.js 18 or newer with npm"
    apt-get -o DPkg::Lock::Timeout=600 -qq update >/dev/null || fail "apt-get update failed"
    apt-get -o DPkg::Lock::Timeout=600 -qq -y --no-install-recommends install nodejs npm >/dev/null ||
        fail "apt-get could not install nodejs and npm"
fi
sh build.sh >/dev/null 2>&1 || fail "npm ci failed; build.sh in this folder shows why"
