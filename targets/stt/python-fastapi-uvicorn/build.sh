#!/bin/sh
# Makes .venv from requirements.lock. Options: ../python-fastapi-granian/make-venv.sh has them.
set -eu
cd "$(dirname "$0")"
exec sh ../python-fastapi-granian/make-venv.sh python-fastapi-uvicorn "$@"
