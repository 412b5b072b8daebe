#!/bin/sh
# Formatter, compiler (a warning is an error), modules that need each other in a circle, tests.
set -eu
cd "$(dirname "$0")"
log=$(mktemp)
trap 'rm -f "$log"' EXIT

mix() { sh inside.sh env MIX_ENV=test mix "$@"; }

mix format --check-formatted
mix compile --warnings-as-errors --all-warnings
mix xref graph --format cycles --label compile-connected --fail-above 0

status=0
mix test --no-start --warnings-as-errors >"$log" 2>&1 || status=$?
cat "$log"
# ExUnit: "Result: 187 passed" or "Result: 184/187 passed, 1 skipped, 1 excluded".
result=$(sed -n 's/^Result: //p' "$log" | tail -n 1)
passed=$(echo "$result" | sed -E 's|^([0-9]+).*|\1|')
ran=$(echo "$result" | sed -E 's|^([0-9]+/)?([0-9]+) passed.*|\2|')
skipped=$(echo "$result" | grep -oE '[0-9]+ (skipped|excluded)' | awk '{ sum += $1 } END { print sum + 0 }')
[ -n "$result" ] || { status=1 passed=0 ran=0; }
echo "elixir-cowboy-plain: $passed passed, $((ran - passed)) failed, $skipped skipped"
exit "$status"
