#!/bin/sh
# Makes .venv from requirements.lock. Options: make-venv.sh has them.
set -eu
cd "$(dirname "$0")"
exec sh make-venv.sh python-fastapi-granian "$@"
