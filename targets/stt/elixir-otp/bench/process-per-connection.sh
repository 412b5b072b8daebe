#!/bin/sh
# CPU of the BEAM per audio frame, by who owns the sockets and how they are read; one line of JSON for each trial, on stdout.
#
#   sh bench/process-per-connection.sh [CONNECTIONS [SECONDS [ROUNDS]]]
set -eu
cd "$(dirname "$0")/.."

connections=${1:-300}
seconds=${2:-8}
rounds=${3:-5}
last=$(($(nproc) - 1))
scratch=$(mktemp -d)
sender=
cleanup() {
    [ -z "$sender" ] || kill "$sender" 2>/dev/null || true
    rm -rf "$scratch"
}
trap cleanup EXIT INT TERM
mkfifo "$scratch/out"

for _ in $(seq "$rounds"); do
    # In turns, so that whatever the machine does meets all shapes alike.
    for shape in each-active one-active each-paced one-paced; do
        SHAPE=$shape CONNECTIONS=$connections MEASURED_SECONDS=$seconds taskset -c "$last" \
            elixir --erl "+S 1:1 +SDcpu 1:1 +SDio 1 +A 1 +sbwt none +sbwtdcpu none +sbwtdio none +Q 65536" \
            -pa '_build/prod/lib/*/ebin' -pa 'vendor/lib/*/ebin' bench/process_per_connection.exs >"$scratch/out" &
        {
            read -r port
            taskset -c 0 python3 bench/send_frames.py "$port" "$connections" &
            sender=$!
            cat
        } <"$scratch/out"
        wait "$sender" || true
        sender=
    done
done
