#!/bin/sh
# Builds free-threaded CPython 3.13 into build/python, with profile-guided optimisation. Optional, and never run by
# `make test`: about a quarter of an hour on two cores. Idempotent; silent when it is there.
#
#   JOBS=2        compilers at a time
#   GIL=1         the same version, built in the same way with the GIL, into build/python-gil: to compare the two
set -eu
cd "$(dirname "$0")"

if [ "${GIL:-0}" = 0 ]; then kind='' option=--disable-gil suffix=t; else kind=-gil option=--enable-gil suffix=''; fi
python=build/python$kind/bin/python3.13$suffix
[ -x "$python" ] || sh ../../../scripts/build-cpython.sh python-asgi-ft "build/python$kind" "$option" --enable-optimizations
[ -n "$kind" ] || "$python" -c 'import sys; sys.exit(sys._is_gil_enabled())' ||
    { echo "python-asgi-ft: $python was built, but its GIL is on" >&2; exit 1; }
