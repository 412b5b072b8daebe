#!/bin/sh
# make-torch-venv.sh NAME [--interpreter]: makes .venv of the target in this folder from its requirements.lock, hashes
# checked, on Debian's own Python, whose package python3-torch is PyTorch for the CPU alone. What the lock names comes before what Debian has.
# Does nothing when it is as the lock says. With --interpreter: names the Python, and fails if it lacks venv or PyTorch.
set -eu
name=$1
python=/usr/bin/python3

"$python" -c 'import ensurepip, sys, torch, venv
sys.exit(sys.version_info < (3, 11))' 2>/dev/null || {
    echo "$name: Debian's CPython 3.11 or newer with venv and python3-torch is needed" >&2
    exit 1
}
if [ "${2:-}" = --interpreter ]; then
    exec "$python" -c 'import platform, torch
print(f"Python {platform.python_version()}, PyTorch {torch.__version__}")'
fi

stamp=.venv/requirements.lock
! cmp -s requirements.lock "$stamp" || exit 0
"$python" -m venv --clear --system-site-packages .venv
.venv/bin/python -m pip install --quiet --disable-pip-version-check --no-deps --require-hashes --ignore-installed -r requirements.lock
cp requirements.lock "$stamp"
