#!/bin/sh
# Installs CPython 3.11 or newer with venv, by the system's packages, where there is none. Silent when it is there.
set -eu
cd "$(dirname "$0")"

if sh build.sh --interpreter >/dev/null 2>&1; then
    exit 0
fi
sh ../../../scripts/apt-install.sh python-fastapi-uvicorn python3 python3-venv
sh build.sh --interpreter >/dev/null
