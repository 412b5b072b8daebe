#!/bin/sh
# Looks for Node.js 20 or later and gets the locked packages. Does nothing when all is there.
set -eu
cd "$(dirname "$0")"
has_node() {
    command -v npm >/dev/null 2>&1 && node -e 'process.exit(parseInt(process.versions.node) < 20 ? 1 : 0)' 2>/dev/null
}
# Debian 13 has a new enough one, 12 has not.
major=$(apt-cache policy nodejs 2>/dev/null | sed -n 's/^ *Candidate: \([0-9]*\).*/\1/p')
if ! has_node && [ "${major:-0}" -ge 20 ]; then
    sh ../../../scripts/apt-install.sh ts-node nodejs npm
fi
if ! has_node; then
    echo "ts-node: needs Node.js 20 or later with npm; install it and run this again" >&2
    exit 1
fi
# What comes by npm stays within this folder.
[ "${PLIMSOLL_INSTALL:-}" != list ] || exit 0
# The stamp holds the lock file that was installed, so that a changed one is noticed.
if ! cmp -s package-lock.json node_modules/.installed-lock.json; then
    if ! npm ci --silent; then
        echo "ts-node: npm ci failed; is the npm registry within reach?" >&2
        exit 1
    fi
    cp package-lock.json node_modules/.installed-lock.json
fi
