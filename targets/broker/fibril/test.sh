#!/bin/sh
# Every level over real sockets, where somebody has put a fibril-server.
set -eu
cd "$(dirname "$0")"
reason=$(sh install.sh)
if [ -n "$reason" ]; then
    # Nothing was tested: that is neither a pass nor a failure, and is listed at the end of `make test`.
    echo "SKIPPED: targets/broker/fibril: $reason"
    [ -z "${PLIMSOLL_SKIPPED_LOG:-}" ] || echo "targets/broker/fibril: $reason" >>"$PLIMSOLL_SKIPPED_LOG"
    echo "fibril: 0 passed, 0 failed"
    exit 0
fi
exec sh ../infrastructure/test.sh
