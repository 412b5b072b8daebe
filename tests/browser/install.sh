#!/bin/sh
# Checks for Node.js 20 or later and for Chromium, and installs the locked packages. Does nothing if everything is
# there.
set -eu
cd "$(dirname "$0")"
if ! major=$(node -p 'process.versions.node.split(".")[0]' 2>/dev/null) || [ "$major" -lt 20 ] || ! command -v npm >/dev/null; then
    echo "browser: needs Node.js 20 or later with npm; install it and run this again" >&2
    exit 1
fi
if ! command -v "${CHROMIUM:-chromium}" >/dev/null; then
    echo "browser: needs Chromium: apt-get install chromium (scripts/install-browser.sh does it), or name one in CHROMIUM" >&2
    exit 1
fi
# The stamp is a copy of the lock file that was installed, so a changed lock file is noticed.
if ! cmp -s package-lock.json node_modules/.installed-lock.json; then
    if ! npm ci --silent; then
        echo "browser: npm ci failed; is the npm registry within reach?" >&2
        exit 1
    fi
    cp package-lock.json node_modules/.installed-lock.json
fi
