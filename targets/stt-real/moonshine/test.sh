#!/bin/sh
# Formatter, linter, type checker (a warning is an error); tests, and the server over real sockets. The last line counts.
set -eu
cd "$(dirname "$0")"
sh build.sh --dev
.venv/bin/ruff format --check --quiet . ../infrastructure
.venv/bin/ruff check --quiet . ../infrastructure
.venv/bin/mypy --no-error-summary
exec sh ../infrastructure/test.sh
