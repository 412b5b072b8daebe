#!/bin/sh
# Formatter and linter, compiler, unit tests. The last line holds the runner's own numbers.
set -eu
cd "$(dirname "$0")"
sh install.sh
PATH="$PWD/node_modules/.bin:$PATH"
biome check --error-on-warnings
sh build.sh
status=0
output=$(node --test --test-reporter=tap dist/tests/*.test.js 2>&1) || status=$?
printf '%s\n' "$output"
passed=$(printf '%s\n' "$output" | sed -n 's/^# pass //p')
failed=$(printf '%s\n' "$output" | sed -n 's/^# fail //p')
skipped=$(printf '%s\n' "$output" | sed -n 's/^# skipped //p')
echo "ts-node: ${passed:-0} passed, ${failed:-1} failed, ${skipped:-0} skipped"
exit "$status"
