#!/bin/sh
# Fetches the server that requirements.lock names into build/, once.
set -eu
cd "$(dirname "$0")"
sh ../infrastructure/unpack-wheels.sh
version=$(build/wheels/bin/nats-server --version | sed 's/.* v//')
exec sh ../infrastructure/write-start-line.sh nats "nats-server $version"
