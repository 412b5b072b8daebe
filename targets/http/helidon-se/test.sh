#!/bin/sh
# Formatter, linter, unit tests, and the end-to-end tests against this target.
set -eu
cd "$(dirname "$0")"
exec sh ../java/test.sh helidon-se helidon-se
