#!/bin/sh
# Puts what package-lock.json names, Bun among it, into node_modules; does nothing when that has been done.
# The gateway needs no compiler: Bun runs the TypeScript as it is.
set -eu
cd "$(dirname "$0")"

stamp=node_modules/.installed
if cmp -s package-lock.json "$stamp"; then
    exit 0
fi
npm ci --no-fund --no-audit --loglevel=error
# Where npm is told to run no install scripts, the runtime has not been put in its place yet.
node_modules/.bin/bun --version >/dev/null 2>&1 || node node_modules/bun/install.js
node_modules/.bin/bun --version >/dev/null
cp package-lock.json "$stamp"
