#!/bin/sh
# Makes .venv from requirements.lock. Options: make-venv.sh of ../../stt/python-asgi has them.
set -eu
cd "$(dirname "$0")"
exec sh ../../stt/python-asgi/make-venv.sh python-granian "$@"
