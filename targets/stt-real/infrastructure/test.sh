#!/bin/sh
# Tests a target in its folder: the server over real sockets, with real speech. The last line counts.
#
#   sh test.sh
set -eu
here=$(dirname "$0")
sh build.sh
exec .venv/bin/python -B "$here/server_test.py"
