#!/bin/sh
# Writes the configuration, prints the start line and becomes the server.
set -eu
cd "$(dirname "$0")"
DEFAULT_PORT=6379
# shellcheck source=../infrastructure/environment.sh
. ../infrastructure/environment.sh
# shellcheck source=../infrastructure/append-only.sh
. ../infrastructure/append-only.sh
start_line
exec redis-server "$DATA_DIR/server.conf"
