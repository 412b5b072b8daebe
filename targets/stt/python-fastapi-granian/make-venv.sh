#!/bin/sh
# make-venv.sh NAME [--interpreter|--dev]: makes .venv of the target in this folder from its requirements.lock, hashes checked. Does nothing when it is
# as the lock says. With --interpreter: names the Python that would be used, and fails where there is none. With --dev: what test.sh needs, too.
set -eu
name=$1
shift

# Any CPython from 3.11 on with a GIL and with venv; the newest are tried last, for wheels of all packages come for them last.
interpreter() {
    for candidate in ${PYTHON:-} python3.11 python3.12 python3.13 python3.14 python3; do
        path=$(command -v "$candidate") || continue
        "$path" -c 'import ensurepip, sys, sysconfig, venv
sys.exit(sys.version_info < (3, 11) or bool(sysconfig.get_config_var("Py_GIL_DISABLED")))' 2>/dev/null || continue
        echo "$path"
        return
    done
    return 1
}

python=$(interpreter) || {
    echo "$name: CPython 3.11 or newer with venv is needed" >&2
    exit 1
}
if [ "${1:-}" = --interpreter ]; then
    exec "$python" --version
fi

locks=requirements.lock
[ "${1:-}" != --dev ] || locks="requirements.lock requirements-dev.lock"
for lock in $locks; do
    stamp=.venv/$lock
    [ ! -f "$stamp" ] || ! cmp -s "$lock" "$stamp" || continue
    [ "$lock" != requirements.lock ] || "$python" -m venv --clear .venv
    .venv/bin/python -m pip install --quiet --disable-pip-version-check --no-deps --require-hashes -r "$lock"
    cp "$lock" "$stamp"
done
