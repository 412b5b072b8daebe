#!/bin/sh
# Installs Debian's Python with venv and its PyTorch for the CPU, where they are missing. Elsewhere the target is optional:
# says what it needs.
set -eu
cd "$(dirname "$0")"

! sh build.sh --interpreter >/dev/null 2>&1 || exit 0
if command -v apt-get >/dev/null 2>&1 &&
    sh ../../../scripts/apt-install.sh whisperlivekit python3 python3-venv python3-torch &&
    sh build.sh --interpreter >/dev/null 2>&1; then
    exit 0
fi
echo "whisperlivekit: optional, and there is no python3-torch for /usr/bin/python3 here, as Debian 12 has it"
