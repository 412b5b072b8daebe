#!/bin/sh
# Writes the start line with the version of the server that is installed.
set -eu
cd "$(dirname "$0")"
version=$(redis-server --version | sed -n 's/.* v=\([^ ]*\).*/\1/p')
debian=$(dpkg-query -W -f '${Version}' redis-server 2>/dev/null || echo none)
exec sh ../infrastructure/write-start-line.sh redis "redis $version" debian-package="$debian"
