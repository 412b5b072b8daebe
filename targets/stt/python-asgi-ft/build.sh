#!/bin/sh
# Makes build/venv from requirements.lock, hashes checked, for the interpreter that build-cpython.sh has built. Does nothing when it is as the lock says.
# With --interpreter: names the interpreter, and fails where it is absent. With --dev: what test.sh needs, too.
# GIL=1: the same in build/venv-gil, for the interpreter with the GIL.
set -eu
cd "$(dirname "$0")"

if [ "${GIL:-0}" = 0 ]; then
    python=build/python/bin/python3.13t
    venv=build/venv
    how='sh targets/stt/python-asgi-ft/build-cpython.sh'
else
    python=build/python-gil/bin/python3.13
    venv=build/venv-gil
    how='GIL=1 sh targets/stt/python-asgi-ft/build-cpython.sh'
fi
[ -x "$python" ] || {
    echo "python-asgi-ft: no $python; build it: $how" >&2
    exit 1
}
if [ "${1:-}" = --interpreter ]; then
    exec "$python" -VV
fi

locks=requirements.lock
[ "${1:-}" != --dev ] || locks="requirements.lock requirements-dev.lock"
for lock in $locks; do
    stamp=$venv/$lock
    [ ! -f "$stamp" ] || ! cmp -s "$lock" "$stamp" || continue
    [ "$lock" != requirements.lock ] || "$python" -m venv --clear $venv
    # The wheel of websockets for 3.13t is the pure-Python one; from source it gets the C function that unmasks.
    BUILD_EXTENSION=yes $venv/bin/python -m pip install --quiet --disable-pip-version-check --no-deps --require-hashes \
        --no-binary websockets -r "$lock"
    cp "$lock" "$stamp"
done
