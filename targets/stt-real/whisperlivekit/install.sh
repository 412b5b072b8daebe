#!/bin/sh
# Installs Debian's Python with venv and its PyTorch for the CPU, where they are missing. Silent when they are there.
set -eu
cd "$(dirname "$0")"

if sh build.sh --interpreter >/dev/null 2>&1; then
    exit 0
fi
sh ../../../scripts/apt-install.sh whisperlivekit python3 python3-venv python3-torch
sh build.sh --interpreter >/dev/null
