#!/bin/sh
# Compiles only when a source is newer than the last build: this runs before every measurement.
set -eu
cd "$(dirname "$0")"
if [ -f dist/.built ] && [ -z "$(find src tests package-lock.json tsconfig.json -newer dist/.built -print | head -n 1)" ]; then
    exit 0
fi
sh install.sh
PATH="$PWD/node_modules/.bin:$PATH"
rm -rf dist
tsc
: > dist/.built
