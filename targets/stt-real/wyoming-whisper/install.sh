#!/bin/sh
# Installs CPython 3.11 or newer with venv, by the system's packages, where there is none. Silent when it is there.
set -eu
cd "$(dirname "$0")"
exec sh ../../stt/python-asgi/install.sh
