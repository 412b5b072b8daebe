#!/bin/sh
# Writes the configuration, prints the start line and becomes the server.
set -eu
cd "$(dirname "$0")"
DEFAULT_PORT=4222
# shellcheck source=../infrastructure/environment.sh
. ../infrastructure/environment.sh

# The other levels are the client's choice of storage; the server keeps its default of two minutes.
case $LEVEL in durable) sync="sync_interval: always" ;; *) sync= ;; esac
# The monitoring port is any free one. The server writes it into a file PROGRAM_PID.ports.
cat >"$DATA_DIR/nats.conf" <<EOF
listen: "0.0.0.0:$PORT"
http: "127.0.0.1:-1"
ports_file_dir: "$DATA_DIR"
max_payload: 8MB
jetstream {
    store_dir: "$DATA_DIR/jetstream"
    $sync
}
EOF
start_line
export GOMAXPROCS="$WORKER_THREADS"
exec build/wheels/bin/nats-server -c "$DATA_DIR/nats.conf"
