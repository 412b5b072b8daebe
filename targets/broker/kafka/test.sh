#!/bin/sh
# Every level over real sockets, where there are Java and Maven.
set -eu
cd "$(dirname "$0")"
if ! reason=$(sh java.sh --version 2>&1 && mvn --version 2>&1); then
    # Nothing was tested: that is neither a pass nor a failure, and is listed at the end of `make test`.
    reason="no Java 17 or newer, or no Maven: $(echo "$reason" | tail -n 1)"
    echo "SKIPPED: targets/broker/kafka: $reason"
    [ -z "${PLIMSOLL_SKIPPED_LOG:-}" ] || echo "targets/broker/kafka: $reason" >>"$PLIMSOLL_SKIPPED_LOG"
    echo "kafka: 0 passed, 0 failed"
    exit 0
fi
exec sh ../infrastructure/test.sh
