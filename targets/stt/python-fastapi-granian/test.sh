#!/bin/sh
# Formatter, linter, type checker (a warning is an error) and tests.
set -eu
cd "$(dirname "$0")"
sh build.sh --dev
.venv/bin/ruff format --check --quiet
.venv/bin/ruff check --quiet
.venv/bin/mypy --no-error-summary
exec sh run-tests.sh python-fastapi-granian .venv/bin/python granian
