#!/bin/sh
# Prints the start line and becomes the server, which needs no configuration file.
set -eu
cd "$(dirname "$0")"
DEFAULT_PORT=9876
# shellcheck source=../infrastructure/environment.sh
. ../infrastructure/environment.sh
server=$(command -v "${FIBRIL_SERVER:-fibril-server}") || { sh install.sh >&2; exit 1; }
admin_port=$(python3 ../infrastructure/free-ports.py 1)
start_line
# The level of a stream is what the client declares. A queue has only one.
exec "$server" --data-dir "$DATA_DIR/data" --broker-bind "0.0.0.0:$PORT" --admin-bind "127.0.0.1:$admin_port"
