#!/bin/sh
# make-venv.sh NAME [--interpreter|--dev]: makes .venv of the target in this folder from its requirements.lock, hashes checked. Does nothing when it is
# as the lock says, and of the same interpreter. With --interpreter: names the Python that would be used, and fails where there is none. With --dev: what
# test.sh needs, too.
# PYTHON names the interpreter. Without it, CURRENT=3.14 takes CPython 3.14, from the path or from where install.sh unpacks it.
set -eu
name=$1
shift

# Any CPython from 3.11 on with a GIL and with venv; the newest are tried last, for wheels of all packages come for them last.
oldest=3.11 candidates="python3.11 python3.12 python3.13 python3.14 python3"
if [ -n "${CURRENT:-}" ]; then
    oldest=$CURRENT candidates="python$CURRENT ../../../build/cpython/usr/bin/python$CURRENT"
fi
interpreter() {
    for candidate in ${PYTHON:-} $candidates; do
        path=$(command -v "$candidate") || continue
        "$path" -c 'import ensurepip, sys, sysconfig, venv
sys.exit(sys.version_info < (3, 11) or bool(sysconfig.get_config_var("Py_GIL_DISABLED")))' 2>/dev/null || continue
        echo "$path"
        return
    done
    return 1
}

python=$(interpreter) || {
    echo "$name: CPython $oldest or newer with venv is needed; PYTHON names another" >&2
    exit 1
}
if [ "${1:-}" = --interpreter ]; then
    exec "$python" --version
fi

version=$("$python" -VV)
[ "$version" = "$(cat .venv/interpreter 2>/dev/null)" ] || rm -rf .venv
locks=requirements.lock
[ "${1:-}" != --dev ] || locks="requirements.lock requirements-dev.lock"
for lock in $locks; do
    stamp=.venv/$lock
    [ ! -f "$stamp" ] || ! cmp -s "$lock" "$stamp" || continue
    if [ "$lock" = requirements.lock ]; then
        "$python" -m venv --clear .venv
        echo "$version" >.venv/interpreter
    fi
    .venv/bin/python -m pip install --quiet --disable-pip-version-check --no-deps --require-hashes -r "$lock"
    cp "$lock" "$stamp"
done
