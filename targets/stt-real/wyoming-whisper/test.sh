#!/bin/sh
# The server over real sockets, with real speech. The last line counts.
set -eu
cd "$(dirname "$0")"
exec sh ../infrastructure/test.sh
