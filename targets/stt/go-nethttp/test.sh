#!/bin/sh
# Formatter, linters and tests; see run-tests.sh.
set -eu
cd "$(dirname "$0")"
exec sh run-tests.sh go-nethttp gonethttp
