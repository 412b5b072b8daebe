#!/bin/sh
# The tests of ../python-fastapi-granian, with uvicorn as the server. Formatter, linter and type checker are that folder's.
set -eu
cd "$(dirname "$0")"
sh build.sh --dev
exec sh ../python-fastapi-granian/run-tests.sh python-fastapi-uvicorn "$PWD/.venv/bin/python" uvicorn
