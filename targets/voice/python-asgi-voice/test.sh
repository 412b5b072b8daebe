#!/bin/sh
# Formatter, linter, type checker (a warning is an error) and tests.
set -eu
cd "$(dirname "$0")"
sh build.sh --dev
.venv/bin/ruff format --check --quiet
.venv/bin/ruff check --quiet
.venv/bin/mypy --no-error-summary
exec sh ../../stt/python-asgi/run-tests.sh python-asgi-voice .venv/bin/python processes "$PWD"
