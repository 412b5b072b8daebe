#!/bin/sh
# Puts what package-lock.json names into node_modules; does nothing when that has been done. JavaScript needs no compiler.
set -eu
cd "$(dirname "$0")"

stamp=node_modules/.installed
if cmp -s package-lock.json "$stamp"; then
    exit 0
fi
npm ci --no-fund --no-audit --loglevel=error
cp package-lock.json "$stamp"
