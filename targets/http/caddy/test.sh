#!/bin/sh
# The configuration as caddy judges it, then the contract over real sockets.
set -eu
cd "$(dirname "$0")"
sh build.sh
exec sh ../infrastructure/test.sh caddy
