#!/bin/sh
# Formatter and linter (a warning is an error), type check, tests. The last line holds the runner's own numbers.
set -eu
cd "$(dirname "$0")"
sh build.sh
node_modules/.bin/biome ci --error-on-warnings
node_modules/.bin/tsc

status=0
output=$(node --test --test-reporter=tap tests/*.test.js 2>&1) || status=$?
printf '%s\n' "$output"
passed=$(printf '%s\n' "$output" | sed -n 's/^# pass //p')
failed=$(printf '%s\n' "$output" | sed -n 's/^# fail //p')
skipped=$(printf '%s\n' "$output" | sed -n 's/^# skipped //p')
echo "node-http: ${passed:-0} passed, ${failed:-1} failed, ${skipped:-0} skipped"
exit "$status"
