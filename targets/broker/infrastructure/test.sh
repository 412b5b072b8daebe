#!/bin/sh
# Tests a target that is a finished broker, in its folder: every level over real sockets. The last line counts.
#
#   sh test.sh
set -eu
here=$(dirname "$0")
sh build.sh
exec python3 -B "$here/level_test.py"
