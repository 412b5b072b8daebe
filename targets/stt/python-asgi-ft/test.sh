#!/bin/sh
# The tests of ../python-asgi on the free-threaded interpreter, where it has been built. Formatter, linter and type checker are that folder's.
set -eu
cd "$(dirname "$0")"

if ! reason=$(sh build.sh --interpreter 2>&1); then
    echo "$reason"
    echo "python-asgi-ft: 0 passed, 0 failed"
    exit 0
fi
sh build.sh --dev
exec sh ../python-asgi/run-tests.sh python-asgi-ft "$PWD/build/venv/bin/python" threads
