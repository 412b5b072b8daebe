#!/bin/sh
# Unpacks CPython 3.14 into this checkout's folder build, where it is not on the path. Silent when it is there.
set -eu
cd "$(dirname "$0")"

if sh build.sh --interpreter >/dev/null 2>&1; then
    exit 0
fi
sh ../../../scripts/unpack-cpython.sh ../../../build/cpython
sh build.sh --interpreter >/dev/null
