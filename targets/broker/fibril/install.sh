#!/bin/sh
# No registry has Fibril's server, so nothing is installed: says how to get it. Silent when it is there.
set -eu
! command -v "${FIBRIL_SERVER:-fibril-server}" >/dev/null 2>&1 || exit 0
echo "fibril: optional, and there is no fibril-server here; build it from github.com/Axmouth/fibril: cargo build --release --bin fibril-server; put it into PATH, or name it with FIBRIL_SERVER"
