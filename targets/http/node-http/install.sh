#!/bin/sh
# Brings Node.js 20.15 or newer with npm to a Debian machine, where the system's packages have it, and the locked packages. Does nothing when all is there.
set -eu
cd "$(dirname "$0")"

fail() {
    echo "node-http/install.sh: $1" >&2
    exit 1
}

has_node() {
    command -v npm >/dev/null 2>&1 && node -e 'process.exit(require("zlib").crc32 ? 0 : 1)' 2>/dev/null
}

# Debian 13 has a new enough one, 12 has not.
major=$(apt-cache policy nodejs 2>/dev/null | sed -n 's/^ *Candidate: \([0-9]*\).*/\1/p')
if ! has_node && [ "${major:-0}" -ge 20 ]; then
    sh ../../../scripts/apt-install.sh node-http nodejs npm
fi
has_node || fail "needs Node.js 20.15 or newer with npm, which this system's packages lack; install it and run this again"
# What comes by npm stays within this folder.
[ "${PLIMSOLL_INSTALL:-}" != list ] || exit 0
sh build.sh >/dev/null 2>&1 || fail "npm ci failed; build.sh in this folder shows why"
