#!/bin/sh
# Tests a target in its folder: the server over real sockets, with real speech. The last line counts.
#
#   sh test.sh
set -eu
here=$(dirname "$0")
name=$(basename "$PWD")

if ! reason=$(sh build.sh --interpreter 2>&1); then
    # Nothing was tested: that is neither a pass nor a failure, and is listed at the end of `make test`.
    echo "SKIPPED: targets/stt-real/$name: $reason"
    [ -z "${PLIMSOLL_SKIPPED_LOG:-}" ] || echo "targets/stt-real/$name: $reason" >>"$PLIMSOLL_SKIPPED_LOG"
    echo "$name: 0 passed, 0 failed"
    exit 0
fi
sh build.sh
exec .venv/bin/python -B "$here/server_test.py"
