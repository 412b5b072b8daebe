#!/bin/sh
# Compares Plimsoll with the load generators that brokers bring along: redis-benchmark for Redis, nats bench for NATS.
#
#   sh scripts/broker-tools.sh FOLDER [flat] [cost] [stop]     without a word: all three
#   sh scripts/broker-tools.sh --install      only installs redis-benchmark, and says how to install nats
#
# flat   the most that each publishes, confirmed, with a window of unconfirmed messages
# cost   at a rate: the client's and the broker's CPU time of a message, and the 99th percentile that the client reports
# stop   at the same rate, while the broker stands still for half a second: which percentiles show it
#
# Each run has a broker of its own, started by targets/broker/NAME in a fresh folder. Broker and client have a core each. A run that
# is not possible is in the record and in the table, with the reason. FOLDER gets record.json, table.md and the output of each tool.
#
# CLIENT_CORE (the last), BROKER_CORE (the one before), BROKERS ("redis nats"), LEVEL (ephemeral), WRITERS (2),
# MESSAGE_BYTES (1024), WINDOW (64), RATE (10000), SECONDS_EACH (10), DATA (where the brokers write; FOLDER)
#
# Not compared: PerfTest of RabbitMQ, ProducerPerformance of Kafka.
set -eu
cd "$(dirname "$0")/.."

[ $# -gt 0 ] || { sed -n '2,/^set/s/^# \{0,1\}//p' "$0" >&2; exit 2; }

have() { command -v "$1" >/dev/null 2>&1; }
missing=
have taskset || missing="$missing util-linux"
have python3 || missing="$missing python3"
[ "$1" != --install ] || have redis-benchmark || missing="$missing redis-tools"
# shellcheck disable=SC2086  # a list of packages
[ -z "$missing" ] || sh scripts/apt-install.sh broker-tools $missing
if [ "$1" = --install ]; then
    have nats || echo "broker-tools: nats is missing: go install github.com/nats-io/natscli/nats@v0.5.1, and add the folder of Go's programs to PATH"
    exit 0
fi
exec python3 scripts/broker_tools/compare.py "$@"
