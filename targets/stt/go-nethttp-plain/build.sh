#!/bin/sh
# Builds bin/gateway; does next to nothing when nothing has changed. -trimpath keeps this machine's paths, and
# -buildvcs=false the state of the surrounding tree, out of the program.
set -eu
cd "$(dirname "$0")"
exec go build -mod=readonly -trimpath -buildvcs=false -o bin/gateway .
