#!/bin/sh
# Every level over real sockets.
set -eu
cd "$(dirname "$0")"
exec sh ../infrastructure/test.sh
