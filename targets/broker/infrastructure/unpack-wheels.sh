#!/bin/sh
# Unpacks the wheels that requirements.lock names into build/wheels, hashes checked, in the target's folder. Does nothing
# if they are there. Nothing of Python's is needed to run what is in them.
set -eu
stamp=build/requirements.lock
! cmp -s requirements.lock "$stamp" || exit 0
rm -rf build/wheels
mkdir -p build
python3 -m pip install --quiet --disable-pip-version-check --no-deps --require-hashes --only-binary :all: --no-compile \
    --target build/wheels --requirement requirements.lock
cp requirements.lock "$stamp"
