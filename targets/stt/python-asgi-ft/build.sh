#!/bin/sh
# Makes build/venv from requirements.lock, hashes checked, for the interpreter that build-cpython.sh has built. Does nothing when it is as the lock says.
# With --interpreter: names the interpreter, and fails where it is absent. With --dev: what test.sh needs, too.
set -eu
cd "$(dirname "$0")"

python=build/python/bin/python3.13t
[ -x "$python" ] || {
    echo "python-asgi-ft: no free-threaded CPython; build it: sh targets/stt/python-asgi-ft/build-cpython.sh" >&2
    exit 1
}
if [ "${1:-}" = --interpreter ]; then
    exec "$python" -VV
fi

locks=requirements.lock
[ "${1:-}" != --dev ] || locks="requirements.lock requirements-dev.lock"
for lock in $locks; do
    stamp=build/venv/$lock
    [ ! -f "$stamp" ] || ! cmp -s "$lock" "$stamp" || continue
    [ "$lock" != requirements.lock ] || "$python" -m venv --clear build/venv
    # The wheel of websockets for 3.13t is the pure-Python one; from source it gets the C function that unmasks.
    BUILD_EXTENSION=yes build/venv/bin/python -m pip install --quiet --disable-pip-version-check --no-deps --require-hashes \
        --no-binary websockets -r "$lock"
    cp "$lock" "$stamp"
done
