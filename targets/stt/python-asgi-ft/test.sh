#!/bin/sh
# The tests of ../python-asgi on the free-threaded interpreter, where it has been built. Formatter, linter and type checker are that folder's.
set -eu
cd "$(dirname "$0")"

if ! reason=$(sh build.sh --interpreter 2>&1); then
    # Nothing was tested: that is neither a pass nor a failure, and is listed at the end of `make test`.
    echo "SKIPPED: targets/stt/python-asgi-ft: $reason"
    [ -z "${PLIMSOLL_SKIPPED_LOG:-}" ] || echo "targets/stt/python-asgi-ft: $reason" >>"$PLIMSOLL_SKIPPED_LOG"
    echo "python-asgi-ft: 0 passed, 0 failed"
    exit 0
fi
sh build.sh --dev
exec sh ../python-asgi/run-tests.sh python-asgi-ft "$PWD/build/venv/bin/python" threads
