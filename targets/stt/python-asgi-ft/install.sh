#!/bin/sh
# Installs nothing: this target is optional, and its interpreter takes minutes to build. Says how, where it is absent.
set -eu
cd "$(dirname "$0")"
sh build.sh --interpreter >/dev/null 2>&1 ||
    echo "python-asgi-ft: optional, and not here; build it: sh targets/stt/python-asgi-ft/build-cpython.sh"
