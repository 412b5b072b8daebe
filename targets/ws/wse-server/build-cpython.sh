#!/bin/sh
# Builds CPython 3.13 into build/python, for a machine without 3.12 or newer. Optional, never run by `make test`: three to
# ten minutes on two cores. Idempotent; silent when it is there.
set -eu
cd "$(dirname "$0")"

python=build/python/bin/python3
[ ! -x $python ] || exit 0
sh ../../../scripts/build-cpython.sh wse-server build/python
$python -c 'import ensurepip, ssl, venv, zlib' || { echo "wse-server: $python was built, but lacks a module" >&2; exit 1; }
