#!/bin/sh
# Writes the start line. The server does not tell its version, so the start line has the hash of its file.
set -eu
cd "$(dirname "$0")"
server=$(command -v "${FIBRIL_SERVER:-fibril-server}") || { sh install.sh >&2; exit 1; }
exec sh ../infrastructure/write-start-line.sh fibril "fibril sha256:$(sha256sum "$server" | cut -c 1-16)"
