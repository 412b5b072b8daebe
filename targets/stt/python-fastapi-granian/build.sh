#!/bin/sh
# Makes .venv from requirements.lock. Options: ../python-asgi/make-venv.sh has them.
set -eu
cd "$(dirname "$0")"
exec env CURRENT=3.14 sh ../python-asgi/make-venv.sh python-fastapi-granian "$@"
