#!/bin/sh
# Formatter and linter (a warning is an error), type check, tests.
set -eu
cd "$(dirname "$0")"
sh build.sh

node_modules/.bin/biome ci --error-on-warnings
node_modules/.bin/tsc --noEmit

log=$(mktemp)
trap 'rm -f "$log"' EXIT
status=0
node_modules/.bin/bun test --dots >"$log" 2>&1 || status=$?
cat "$log"
passed=$(sed -n 's/^ *\([0-9][0-9]*\) pass$/\1/p' "$log")
failed=$(sed -n 's/^ *\([0-9][0-9]*\) fail$/\1/p' "$log")
skipped=$(sed -n 's/^ *\([0-9][0-9]*\) skip$/\1/p' "$log")
echo "ts-bun-plain: ${passed:-0} passed, ${failed:-0} failed, ${skipped:-0} skipped"
# No count is a runner that did not come to its end.
[ "$status" -eq 0 ] && [ -n "$passed" ] && [ "${failed:-0}" -eq 0 ]
