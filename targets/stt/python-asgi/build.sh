#!/bin/sh
# Makes .venv from requirements.lock. Options: make-venv.sh has them.
set -eu
cd "$(dirname "$0")"
exec env CURRENT=3.14 sh make-venv.sh python-asgi "$@"
