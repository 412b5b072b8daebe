#!/bin/sh
# Gets the locked packages, Node.js among them; to run npm, any Node.js does. Does nothing when all is there.
set -eu
cd "$(dirname "$0")"
npm --version >/dev/null 2>&1 || sh ../../../scripts/apt-install.sh ts-node nodejs npm
# What comes by npm stays within this folder.
[ "${PLIMSOLL_INSTALL:-}" != list ] || exit 0
# The stamp holds the lock file that was installed, so that a changed one is noticed.
if ! cmp -s package-lock.json node_modules/.installed-lock.json; then
    if ! npm ci --silent; then
        echo "ts-node: npm ci failed; is the npm registry within reach?" >&2
        exit 1
    fi
    if ! node_modules/.bin/node --version >/dev/null; then
        echo "ts-node: package.json names no Node.js for this machine" >&2
        exit 1
    fi
    cp package-lock.json node_modules/.installed-lock.json
fi
