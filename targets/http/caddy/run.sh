#!/bin/sh
# Checks the environment, prints the start line and becomes Caddy.
set -eu
cd "$(dirname "$0")"
# shellcheck source=../infrastructure/environment.sh
. ../infrastructure/environment.sh
# shellcheck source=../infrastructure/start-line.sh
. ../infrastructure/start-line.sh
# Where it saves its configuration and its certificates, else in the user's home.
export XDG_CONFIG_HOME="$PWD/build/run-$PORT" XDG_DATA_HOME="$PWD/build/run-$PORT"
export GOMAXPROCS="$WORKER_THREADS"
exec caddy run --config Caddyfile --adapter caddyfile
