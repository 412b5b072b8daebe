#!/bin/sh
# Brings Node.js 20 or newer with npm to a Debian machine, where the system's packages have it, and the locked packages. Does nothing when all is there.
set -eu
cd "$(dirname "$0")"

fail() {
    echo "node-ws/install.sh: $1" >&2
    exit 1
}

has_node() {
    command -v npm >/dev/null 2>&1 && node -e 'process.exit(parseInt(process.versions.node) < 20 ? 1 : 0)' 2>/dev/null
}

if ! has_node && command -v apt-get >/dev/null 2>&1; then
    apt-get -o DPkg::Lock::Timeout=600 -qq update >/dev/null || fail "apt-get update failed"
    apt-get -o DPkg::Lock::Timeout=600 -qq -y --no-install-recommends install nodejs npm >/dev/null ||
        fail "apt-get could not install nodejs and npm"
fi
has_node || fail "needs Node.js 20 or newer with npm, which this system's packages lack; install it and run this again"
sh build.sh >/dev/null 2>&1 || fail "npm ci failed; build.sh in this folder shows why"
